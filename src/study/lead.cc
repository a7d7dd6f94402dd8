#include "study/lead.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>

#include "fleetfit/core/process_info.h"
#include "fleetfit/tune/patience.h"
#include "study/crew.h"

namespace fleetfit::study {
namespace {

using std::chrono::milliseconds;

tl::unexpected<Error> tuned_by_another(const std::string& study) {
  return refuse(fmt::format("study '{}' is being tuned by another process", study));
}

}  // namespace

StudyLead::StudyLead(store::StudyStore& store, const core::Clock& clock, Wish wish,
                     core::FileDescriptor lock)
    : store_(store),
      clock_(clock),
      wish_(std::move(wish)),
      name_(fmt::format("{}:{}", core::host_name(),
                        std::filesystem::weakly_canonical(wish_.folder).string())),
      lock_(std::move(lock)) {}

StudyLead::~StudyLead() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  if (!is_lost_) static_cast<void>(renew(milliseconds(0)));
}

Result<std::unique_ptr<StudyLead>> StudyLead::take(store::StudyStore& store,
                                                   const core::Clock& clock, Wish wish,
                                                   const std::function<void(std::string_view)>& say,
                                                   const std::stop_token& stop) {
  const auto file = wish.folder / "lead.lock";
  core::FileDescriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock.is_open())
    return fail(ErrorCode::io, fmt::format("{}: cannot be opened: {}", file.string(),
                                           core::system_message(errno)));
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<StudyLead> lead(new StudyLead(store, clock, std::move(wish), std::move(lock)));
  if (::flock(lead->lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return tuned_by_another(lead->wish_.study);

  tune::Patience patience(say, stop, lead->wish_.patience);
  const auto give_up_at = clock.now() + 3 * lead->wish_.lease;
  for (bool said = false;; said = true) {
    FLEETFIT_ASSIGN(const auto taken,
                    patience.keep_trying([&] { return lead->renew(lead->wish_.lease); }));
    if (taken) break;
    if (clock.now() > give_up_at) return tuned_by_another(lead->wish_.study);
    if (!said) say("waiting for another tuner of this study to end");
    if (!tune::sleep_unless_stopped(milliseconds(200), stop))
      return fail(ErrorCode::cancelled, "it was stopped");
  }
  lead->thread_ = std::jthread([raw = lead.get()](const std::stop_token& end) { raw->keep(end); });
  return lead;
}

Result<bool> StudyLead::renew(milliseconds length) {
  const auto now = std::chrono::floor<milliseconds>(clock_.date());
  // Clocks differ: another one's lease is over only when it has been over for a while.
  return store_.lead_study(wish_.study, name_, now - wish_.lease,
                           length.count() == 0 ? now - wish_.lease : now + length);
}

void StudyLead::keep(const std::stop_token& end) {
  while (tune::sleep_unless_stopped(wish_.lease / 3, end)) {
    const auto held = renew(wish_.lease);
    if (held && !*held) is_lost_ = true;
  }
}

}  // namespace fleetfit::study
