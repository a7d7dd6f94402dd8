#include "store/memory_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "store/check.h"
#include "store/job_transitions.h"

namespace fleetfit::store {
namespace {

template <class Value>
using ByName = std::map<std::string, Value, std::less<>>;
template <class Record>
using ById = std::map<std::int64_t, Record>;

template <class Map, class Key>
auto find_in(const Map& records, const Key& key) -> std::optional<typename Map::mapped_type> {
  const auto found = records.find(key);
  return found == records.end() ? std::nullopt : std::optional(found->second);
}

// With ids under `before` (0: any), newest first.
template <class Record, class Fits>
std::vector<Record> newest_before(const ById<Record>& records, std::int64_t before,
                                  std::size_t limit, const Fits& fits) {
  std::vector<Record> list;
  auto next = before > 0 ? records.lower_bound(before) : records.end();
  while (next != records.begin() && list.size() < limit)
    if (--next; fits(next->second)) list.push_back(next->second);
  return list;
}

// Numbers from 1.
template <class Record>
std::int64_t add_to(ById<Record>& records, std::int64_t& last, const Record& record) {
  ++last;
  records.emplace(last, record).first->second.id = last;
  return last;
}

bool fits(const AgentFilter& filter, const std::string& query, const AgentRecord& agent) {
  if (!query.empty() && searchable_text(agent).find(query) == std::string::npos) return false;
  if (filter.seen_since && (!agent.last_seen || *agent.last_seen < *filter.seen_since))
    return false;
  if (filter.seen_before && (!agent.last_seen || *agent.last_seen >= *filter.seen_before))
    return false;
  return !filter.never_seen || !agent.last_seen;
}

bool fits(const EventFilter& filter, const EventRecord& event) {
  return (!filter.agent || *filter.agent == event.agent) &&
         (!filter.kind || *filter.kind == event.kind) && (!filter.job || filter.job == event.job);
}

/// Jobs, and the orders in which they are asked for.
class MemoryJobs {
 public:
  const ById<JobRecord>& all() const { return jobs_; }
  const JobCounts& counts() const { return total_; }
  JobCounts counts_of(std::string_view agent) const {
    return find_in(counts_, agent).value_or(JobCounts{});
  }
  const JobRecord* find(std::int64_t id) const {
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? nullptr : &found->second;
  }
  std::optional<std::int64_t> of_key(const std::string& key) const { return find_in(keys_, key); }

  // Adds the job, or replaces the one of its id.
  void put(JobRecord job) {
    remove(job.id);
    const auto id = job.id;
    const auto& kept = jobs_.emplace(id, std::move(job)).first->second;
    count(kept, 1);
    if (kept.state == JobState::waiting) waiting_[kept.agent].insert(id);
    if (kept.lease) leases_.emplace(*kept.lease, id);
    if (!kept.key.empty()) keys_.emplace(kept.key, id);
  }

  void remove(std::int64_t id) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return;
    const auto& job = found->second;
    count(job, -1);
    if (job.state == JobState::waiting) waiting_[job.agent].erase(id);
    if (job.lease) leases_.erase({*job.lease, id});
    keys_.erase(job.key);
    jobs_.erase(found);
  }

  void remove_unended(std::string_view agent) {
    std::vector<std::int64_t> unended;
    for (const auto& [id, job] : jobs_)
      if (job.agent == agent && !has_ended(job.state)) unended.push_back(id);
    for (const auto id : unended) remove(id);
  }

  std::vector<std::int64_t> waiting(std::string_view agent, std::size_t most) const {
    std::vector<std::int64_t> ids;
    const auto found = waiting_.find(agent);
    if (found == waiting_.end()) return ids;
    for (auto id = found->second.begin(); id != found->second.end() && ids.size() < most; ++id)
      ids.push_back(*id);
    return ids;
  }

  std::vector<std::int64_t> abandoned(Time now) const {
    std::vector<std::int64_t> ids;
    for (auto lease = leases_.begin(); lease != leases_.end() && lease->first <= now; ++lease)
      ids.push_back(lease->second);
    return ids;
  }

 private:
  void count(const JobRecord& job, std::int64_t change) {
    count_of(total_, job.state) += change;
    count_of(counts_[job.agent], job.state) += change;
  }

  ById<JobRecord> jobs_;
  ByName<std::set<std::int64_t>> waiting_;  // of an agent
  std::set<std::pair<Time, std::int64_t>> leases_;
  ByName<std::int64_t> keys_;
  ByName<JobCounts> counts_;  // of an agent
  JobCounts total_;
};

class MemoryFleet final : public FleetStore {
 public:
  Result<std::int64_t> add_token(const TokenRecord& token) override {
    FLEETFIT_TRY(check(token));
    const std::scoped_lock lock(mutex_);
    if (hashes_.contains(token.hash)) return token_exists(token.name);
    const auto id = add_to(tokens_, last_token_, token);
    hashes_.emplace(token.hash, id);
    return id;
  }
  Result<std::optional<TokenRecord>> find_token(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    const auto id = find_in(hashes_, hash);
    return id ? find_in(tokens_, *id) : std::nullopt;
  }
  Result<std::vector<TokenRecord>> list_tokens() override {
    const std::scoped_lock lock(mutex_);
    std::vector<TokenRecord> list;
    for (const auto& [id, token] : tokens_) list.push_back(token);
    return list;
  }
  Result<bool> revoke_token(std::int64_t id, Time now) override {
    const std::scoped_lock lock(mutex_);
    const auto found = tokens_.find(id);
    if (found == tokens_.end() || found->second.revoked) return false;
    found->second.revoked = now;
    return true;
  }

  Status save_agents(std::span<const AgentRecord> agents) override {
    FLEETFIT_TRY(check_each(agents));
    const std::scoped_lock lock(mutex_);
    for (const auto& agent : agents) save(agent);
    return {};
  }
  Result<std::optional<AgentRecord>> find_agent(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return find_in(agents_, name);
  }
  Result<std::vector<AgentRecord>> list_agents(const AgentFilter& filter) override {
    FLEETFIT_TRY(check(filter));
    const auto query = searchable_text(filter.query);
    const std::scoped_lock lock(mutex_);
    std::vector<AgentRecord> list;
    for (auto next = agents_.upper_bound(filter.after);
         next != agents_.end() && list.size() < filter.limit; ++next) {
      if (!fits(filter, query, next->second)) continue;
      list.push_back(next->second);
      if (!filter.probes) list.back().probe = "{}";
    }
    return list;
  }
  Result<AgentCounts> count_agents(Time online_since) override {
    const std::scoped_lock lock(mutex_);
    AgentCounts counts{.all = static_cast<std::int64_t>(agents_.size())};
    for (const auto& [name, agent] : agents_) {
      if (!agent.last_seen) ++counts.never;
      if (agent.last_seen && *agent.last_seen >= online_since) ++counts.online;
    }
    return counts;
  }
  Result<bool> remove_agent(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    const auto found = agents_.find(name);
    if (found == agents_.end()) return false;
    jobs_.remove_unended(name);
    if (const auto last = sequences_.find(name); last != sequences_.end()) sequences_.erase(last);
    agents_.erase(found);
    return true;
  }

  Result<std::vector<std::int64_t>> add_jobs(std::span<const JobRecord> jobs) override {
    for (const auto& job : jobs) FLEETFIT_TRY(check_new_job(job));
    const std::scoped_lock lock(mutex_);
    for (const auto& job : jobs)
      if (!agents_.contains(job.agent)) return no_agent(job.agent);
    std::vector<std::int64_t> ids;
    for (const auto& job : jobs) {
      const auto known = jobs_.of_key(job.key);
      ids.push_back(known ? *known : ++last_job_);
      if (!known) jobs_.put(new_job(job, last_job_));
    }
    return ids;
  }
  Result<std::optional<JobRecord>> find_job(std::int64_t id) override {
    const std::scoped_lock lock(mutex_);
    return find_in(jobs_.all(), id);
  }
  Result<std::vector<JobRecord>> list_jobs(const JobFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    const auto fits = [&](const JobRecord& job) {
      return (!filter.agent || *filter.agent == job.agent) &&
             (!filter.state || *filter.state == job.state);
    };
    auto list = newest_before(jobs_.all(), filter.before, filter.limit, fits);
    if (!filter.details)
      for (auto& job : list) job.request = job.limits = job.result = "{}";
    return list;
  }
  Result<JobCounts> count_jobs() override {
    const std::scoped_lock lock(mutex_);
    return jobs_.counts();
  }
  Result<JobCounts> count_jobs_of(std::string_view agent) override {
    const std::scoped_lock lock(mutex_);
    return jobs_.counts_of(agent);
  }
  Result<std::vector<JobRecord>> claim_jobs(std::string_view agent, Time now, Time until,
                                            std::size_t most) override {
    const std::scoped_lock lock(mutex_);
    if (!agents_.contains(agent)) return no_agent(agent);
    std::vector<JobRecord> claimed;
    for (const auto id : jobs_.waiting(agent, most)) {
      claimed.push_back(*jobs_.find(id));
      claim(claimed.back(), now, until);
      jobs_.put(claimed.back());
    }
    return claimed;
  }
  Result<std::vector<std::int64_t>> heartbeat(std::string_view agent, std::string_view serving,
                                              std::span<const Running> running, Time now,
                                              Time until) override {
    FLEETFIT_TRY(check_serving(serving));
    const std::scoped_lock lock(mutex_);
    const auto found = agents_.find(agent);
    if (found == agents_.end()) return no_agent(agent);
    found->second.serving = serving;
    found->second.last_seen = now;
    std::vector<std::int64_t> stop;
    for (const auto& one : running) {
      const auto heard = change<Heard>(one.job, Heard::stops, [&](JobRecord& job) {
        return hear_of(job, agent, one, now, until);
      });
      if (heard == Heard::stops) stop.push_back(one.job);
    }
    return stop;
  }
  Result<std::vector<Ended>> end_jobs(std::string_view agent, std::span<const JobEnd> ends,
                                      Time now) override {
    FLEETFIT_TRY(check_each(ends));
    const std::scoped_lock lock(mutex_);
    std::vector<Ended> answers;
    for (const auto& one : ends)
      answers.push_back(change<Ended>(one.job, Ended::lost,
                                      [&](JobRecord& job) { return end(job, agent, one, now); }));
    return answers;
  }
  Result<bool> cancel_job(std::int64_t id, Time now) override {
    const std::scoped_lock lock(mutex_);
    return change<bool>(id, false, [&](JobRecord& job) { return cancel(job, now); });
  }
  Result<std::vector<JobRecord>> take_back_jobs(Time now) override {
    const std::scoped_lock lock(mutex_);
    std::vector<JobRecord> taken;
    for (const auto id : jobs_.abandoned(now)) {
      taken.push_back(*jobs_.find(id));
      take_back(taken.back(), now);
      jobs_.put(taken.back());
    }
    return taken;
  }

  Result<std::size_t> add_events(std::span<const EventRecord> events) override {
    FLEETFIT_TRY(check_each(events));
    const std::scoped_lock lock(mutex_);
    std::size_t added = 0;
    for (const auto& event : events) {
      if (event.sequence > 0) {
        auto& last = sequences_[event.agent];
        if (event.sequence <= last) continue;
        last = event.sequence;
      }
      add_to(events_, last_event_, event);
      ++added;
    }
    return added;
  }
  Result<std::vector<EventRecord>> list_events(const EventFilter& filter) override {
    const std::scoped_lock lock(mutex_);
    std::vector<EventRecord> list;
    const auto wanted = [&](const EventRecord& event) {
      return event.id > filter.after && fits(filter, event);
    };
    if (filter.newest) {
      list = newest_before(events_, 0, filter.limit, wanted);
      std::ranges::reverse(list);
      return list;
    }
    for (auto next = events_.upper_bound(filter.after);
         next != events_.end() && list.size() < filter.limit; ++next)
      if (fits(filter, next->second)) list.push_back(next->second);
    return list;
  }
  Result<std::int64_t> newest_event() override {
    const std::scoped_lock lock(mutex_);
    return last_event_;
  }
  Result<std::int64_t> last_sequence(std::string_view agent) override {
    const std::scoped_lock lock(mutex_);
    return find_in(sequences_, agent).value_or(0);
  }
  Result<std::int64_t> remove_events_before(Time time) override {
    const std::scoped_lock lock(mutex_);
    return static_cast<std::int64_t>(
        std::erase_if(events_, [&](const auto& one) { return one.second.time < time; }));
  }

  Status save_file(const FileRecord& file) override {
    FLEETFIT_TRY(check(file));
    const std::scoped_lock lock(mutex_);
    files_.insert_or_assign(file.hash, file);
    return {};
  }
  Result<std::optional<FileRecord>> find_file(std::string_view hash) override {
    const std::scoped_lock lock(mutex_);
    return find_in(files_, hash);
  }
  Result<std::vector<FileRecord>> list_files(std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    std::vector<FileRecord> list;
    for (const auto& [hash, file] : files_) list.push_back(file);
    std::ranges::reverse(list);
    std::ranges::stable_sort(list, std::ranges::greater(), &FileRecord::created);
    if (list.size() > limit)
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(limit), list.end());
    return list;
  }

  Status add_audit(const AuditRecord& entry) override {
    FLEETFIT_TRY(check(entry));
    const std::scoped_lock lock(mutex_);
    add_to(audit_, last_audit_, entry);
    return {};
  }
  Result<std::vector<AuditRecord>> list_audit(std::int64_t before, std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    return newest_before(audit_, before, limit, [](const AuditRecord&) { return true; });
  }

  Status restore(const FleetRecords& records) override {
    FLEETFIT_TRY(check(records));
    const std::scoped_lock lock(mutex_);
    FLEETFIT_TRY(check_free(records));
    for (const auto& token : records.tokens) {
      put(tokens_, last_token_, token);
      hashes_.emplace(token.hash, token.id);
    }
    for (const auto& agent : records.agents) save(agent);
    for (const auto& job : records.jobs) {
      jobs_.put(job);
      last_job_ = std::max(last_job_, job.id);
    }
    for (const auto& event : records.events) {
      put(events_, last_event_, event);
      if (event.sequence > 0) raise_sequence(event.agent, event.sequence);
    }
    for (const auto& file : records.files) files_.insert_or_assign(file.hash, file);
    for (const auto& entry : records.audit) put(audit_, last_audit_, entry);
    for (const auto& [agent, sequence] : records.sequences) raise_sequence(agent, sequence);
    return {};
  }

 private:
  template <class Record>
  static void put(ById<Record>& records, std::int64_t& last, const Record& record) {
    records.emplace(record.id, record);
    last = std::max(last, record.id);
  }

  template <class Record>
  static Status check_free(const ById<Record>& known, const std::vector<Record>& records,
                           std::string_view what) {
    for (const auto& record : records)
      if (known.contains(record.id))
        return fail(ErrorCode::invalid_input,
                    fmt::format("there is a{} {} already", what, record.id));
    return {};
  }
  Status check_free(const FleetRecords& records) const {
    const Status checks[] = {check_free(tokens_, records.tokens, " token"),
                             check_free(jobs_.all(), records.jobs, " job"),
                             check_free(events_, records.events, "n event"),
                             check_free(audit_, records.audit, "n entry of the audit")};
    for (const auto& checked : checks)
      if (!checked) return checked;
    for (const auto& token : records.tokens)
      if (hashes_.contains(token.hash)) return token_exists(token.name);
    return {};
  }

  void save(AgentRecord agent) {
    const auto known = agents_.find(agent.name);
    if (known != agents_.end()) {
      agent.created = known->second.created;
      if (!agent.last_seen) agent.last_seen = known->second.last_seen;
    }
    agents_.insert_or_assign(agent.name, agent);
  }

  void raise_sequence(const std::string& agent, std::int64_t sequence) {
    auto& last = sequences_[agent];
    last = std::max(last, sequence);
  }

  // What `body` gives of the job, which it may change; `none` if there is no such job.
  template <class Answer, class Body>
  Answer change(std::int64_t id, Answer none, const Body& body) {
    const auto* known = jobs_.find(id);
    if (known == nullptr) return none;
    auto job = *known;
    const Answer answer = body(job);
    if (job != *known) jobs_.put(std::move(job));
    return answer;
  }

  std::mutex mutex_;
  ById<TokenRecord> tokens_;
  ByName<std::int64_t> hashes_;  // of tokens
  ByName<AgentRecord> agents_;
  MemoryJobs jobs_;
  ById<EventRecord> events_;
  ByName<std::int64_t> sequences_;  // of agents
  ByName<FileRecord> files_;        // by hash
  ById<AuditRecord> audit_;
  std::int64_t last_token_ = 0;
  std::int64_t last_job_ = 0;
  std::int64_t last_event_ = 0;
  std::int64_t last_audit_ = 0;
};

}  // namespace

std::unique_ptr<FleetStore> make_memory_fleet() { return std::make_unique<MemoryFleet>(); }

}  // namespace fleetfit::store
