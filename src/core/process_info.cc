#include "fleetfit/core/process_info.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "fleetfit/core/file.h"

namespace fleetfit::core {

// "PID (NAME) STATE …": the name may hold spaces and parentheses.
Result<ProcessInfo> process_info(std::int64_t pid, const std::filesystem::path& proc) {
  const auto file = proc / fmt::to_string(pid) / "stat";
  FLEETFIT_ASSIGN(const auto text, read_file(file));
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  ProcessInfo info;
  std::string other;
  const auto skip = [&](int count) {
    for (int i = 0; i < count; ++i) fields >> other;
  };
  std::int64_t user = 0;
  std::int64_t system = 0;
  fields >> info.state;
  skip(10);
  fields >> user >> system;
  skip(6);
  fields >> info.start_ticks;
  if (!fields)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: this does not describe a process", file.string()));
  info.cpu_s = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return info;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace fleetfit::core
