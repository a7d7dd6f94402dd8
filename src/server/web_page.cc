#include "fleetfit/server/web_files.h"

#include <algorithm>

#include "server/api_routes.h"

namespace fleetfit::server {
namespace {

constexpr std::string_view kNoPage =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>fleetfit</title>"
    "<p>This fleetfit was built without its web page, which needs npm. The API is under "
    "<code>/api/v1</code>.</p></html>\n";

const WebFile* find_file(std::string_view path) {
  const auto files = web_files();
  const auto at = std::ranges::find(files, path, &WebFile::path);
  return at == files.end() ? nullptr : &*at;
}

bool is_view(std::string_view path) {
  return path.substr(path.rfind('/') + 1).find('.') == std::string_view::npos;
}

ApiReply file_reply(const WebFile& file, const ApiRequest& request) {
  ApiReply reply{.type = std::string(file.type)};
  // Files under /assets/ have their content's hash in their names.
  const bool lasts = file.path.starts_with("/assets/");
  reply.headers = {{"ETag", std::string(file.etag)},
                   {"Cache-Control", lasts ? "public, max-age=31536000, immutable" : "no-cache"}};
  if (request.if_none_match == file.etag) {
    reply.status = 304;
    return reply;
  }
  reply.headers.emplace_back("Content-Encoding", "gzip");
  reply.body.assign(reinterpret_cast<const char*>(file.octets.data()), file.octets.size());
  return reply;
}

}  // namespace

ApiReply answer_page(const ApiRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    auto reply = refusal(405, "wrong_method", "this path takes GET");
    reply.headers.emplace_back("Allow", "GET");
    return reply;
  }
  if (const auto* file = find_file(request.path)) return file_reply(*file, request);
  if (!is_view(request.path)) return refusal(404, "not_found", "there is no such file");
  if (const auto* index = find_file("/index.html")) return file_reply(*index, request);
  return {.type = "text/html; charset=utf-8",
          .headers = {{"Cache-Control", "no-cache"}},
          .body = std::string(kNoPage)};
}

}  // namespace fleetfit::server
