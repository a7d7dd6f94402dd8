#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/data/image_files.h"

namespace fleetfit::data {

/// A WAV file of 16 bits.
inline std::string wav_file(const std::vector<std::int16_t>& samples, std::uint32_t rate = 8000,
                            std::uint32_t channels = 1) {
  std::string data;
  for (const auto sample : samples) data += number(static_cast<std::uint16_t>(sample), 2);
  const auto format = number(1, 2) + number(channels, 2) + number(rate, 4) +
                      number(rate * channels * 2, 4) + number(channels * 2, 2) + number(16, 2);
  const auto body = "WAVEfmt " + number(16, 4) + format + "data" +
                    number(static_cast<std::uint32_t>(data.size()), 4) + data;
  return "RIFF" + number(static_cast<std::uint32_t>(body.size()), 4) + body;
}

/// One file of a tar archive: header and content, filled up to whole blocks.
inline std::string tar_member(std::string_view name, std::string_view content, char kind = '0') {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) {
    header.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(124, fmt::format("{:011o}", content.size()));
  put(148, "        ");
  header[156] = kind;
  put(257, std::string_view("ustar\0"
                            "00",
                            8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  std::string padded(content);
  padded.resize((content.size() + 511) / 512 * 512);
  return header + padded;
}

inline std::string tar_end() { return std::string(1024, '\0'); }

}  // namespace fleetfit::data
