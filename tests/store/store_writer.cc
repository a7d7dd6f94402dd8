#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "fleetfit/store/store.h"
#include "tests/store/example_records.h"

/// Adds measurements to a store, for tests with several processes.
///   store_writer URL DEVICE BATCHES SIZE OPERATORS
/// After each batch it prints the number of batches that the store has confirmed.
namespace fleetfit::store {
namespace {

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

int write(std::span<char*> arguments) {
  auto store = open_store(arguments[0]);
  if (!store) return fail_with(store.error());
  auto measurement = full_measurement();
  measurement.device = arguments[1];
  measurement.operators = example_operators(number(arguments[4]));
  const std::vector batch(static_cast<std::size_t>(number(arguments[3])), measurement);
  for (int i = 1; i <= number(arguments[2]); ++i) {
    const auto added = (*store)->add_measurements(batch);
    if (!added) return fail_with(added.error());
    std::printf("%d\n", i);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace fleetfit::store

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  return fleetfit::store::write(std::span(argv, 6).subspan(1));
}
