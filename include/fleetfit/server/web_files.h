#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fleetfit::server {

/// A file of the web page, as it is embedded in the program.
struct WebFile {
  std::string_view path = {};              ///< "/index.html", "/assets/index-5f3a.js"
  std::string_view type = {};              ///< of its content: "text/html; charset=utf-8"
  std::string_view etag = {};              ///< of its content, with quotes: "\"5f3a…\""
  std::span<const std::byte> octets = {};  ///< compressed by gzip
};

/// All files, "/index.html" among them. Empty if the program was built without the page.
std::span<const WebFile> web_files();

}  // namespace fleetfit::server
