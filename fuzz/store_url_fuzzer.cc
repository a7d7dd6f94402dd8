#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fleetfit/store/store.h"
#include "fleetfit/tune/executor.h"
#include "store/sql/postgres_store.h"

// A URL that is understood is so without its password, which is then gone; and what squeue says is
// read or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(tune::parse_squeue_line(text));
  const auto url = "postgres://" + text;
  const auto plain = store::without_password(url);
  if (store::parse_postgres(url) && !store::parse_postgres(plain.url)) std::abort();
  if (!store::without_password(plain.url).password.empty()) std::abort();
  return 0;
}
