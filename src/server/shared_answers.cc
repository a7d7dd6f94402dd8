#include "server/shared_answers.h"

namespace fleetfit::server {
namespace {

constexpr std::size_t kMostQuestions = 32;
constexpr std::size_t kMostBytes = std::size_t{512} << 10;  // larger ones are not kept

}  // namespace

std::shared_ptr<SharedAnswers::Answer> SharedAnswers::find(const std::string& question) {
  const std::lock_guard lock(mutex_);
  if (const auto at = answers_.find(question); at != answers_.end()) return at->second;
  if (answers_.size() >= kMostQuestions) answers_.clear();
  return answers_.emplace(question, std::make_shared<Answer>()).first->second;
}

Result<ApiReply> SharedAnswers::get(const std::string& question, std::optional<Moment> since,
                                    const Compute& compute) {
  if (!since) return compute();
  const auto answer = find(question);
  const std::lock_guard lock(answer->mutex);
  if (answer->begun && *answer->begun >= *since) return answer->reply;
  answer->begun.reset();
  const auto begun = std::chrono::steady_clock::now();
  FLEETFIT_ASSIGN(auto reply, compute());
  if (reply.body.size() > kMostBytes) return reply;
  answer->begun = begun;
  answer->reply = reply;
  return reply;
}

}  // namespace fleetfit::server
