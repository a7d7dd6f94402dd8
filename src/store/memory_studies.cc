#include "store/memory_studies.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <tuple>

#include "store/check.h"
#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

/// A study with its trials, and the orders in which they are asked for.
class MemoryStudy {
 public:
  explicit MemoryStudy(StudyRecord record) : record_(std::move(record)) {}

  StudyRecord& record() { return record_; }
  const StudyRecord& record() const { return record_; }
  const TrialCounts& counts() const { return counts_; }
  std::int64_t next_number() const { return static_cast<std::int64_t>(trials_.size()); }

  const TrialRecord* find(std::int64_t number) const {
    if (number < 0 || number >= next_number()) return nullptr;
    return &trials_[static_cast<std::size_t>(number)];
  }

  bool lead(std::string_view tuner, Time now, Time until) {
    if (!may_lead(tuner, now, tuner_, tuner_until_)) return false;
    tuner_ = tuner;
    tuner_until_ = until;
    return true;
  }

  // Adds the trial, or replaces the one of its number.
  void put(TrialRecord trial) {
    const auto index = static_cast<std::size_t>(trial.number);
    if (index == trials_.size()) {
      trials_.push_back(std::move(trial));
    } else {
      forget(trials_[index]);
      trials_[index] = std::move(trial);
    }
    auto& kept = trials_[index];
    kept.change = ++change_;
    know(kept);
  }

  // No change that anybody follows.
  void renew(std::int64_t number, Time until, std::string_view progress) {
    auto& trial = trials_[static_cast<std::size_t>(number)];
    forget(trial);
    trial.lease_until = until;
    trial.progress = progress;
    know(trial);
  }

  std::vector<std::int64_t> for_workers(Time now, std::size_t limit) const {
    std::vector<std::int64_t> numbers;
    for (const auto& [until, number] : leases_) {
      if (until > now || numbers.size() == limit) break;
      numbers.push_back(number);
    }
    for (const auto number : queued_) {
      if (numbers.size() == limit) break;
      numbers.push_back(number);
    }
    return numbers;
  }

  std::vector<TrialRecord> changes(std::int64_t since, std::size_t limit) const {
    std::vector<TrialRecord> list;
    for (auto i = changes_.upper_bound(since); i != changes_.end() && list.size() < limit; ++i)
      list.push_back(*find(i->second));
    return list;
  }

  std::vector<TrialRecord> best(std::size_t limit) const {
    std::vector<TrialRecord> list;
    for (auto i = scores_.begin(); i != scores_.end() && list.size() < limit; ++i)
      list.push_back(*find(std::get<std::int64_t>(*i)));
    return list;
  }

 private:
  // Cut early or not, score, number: the lowest is the best.
  using Rank = std::tuple<bool, double, std::int64_t>;
  static Rank rank_of(const TrialRecord& trial) {
    return {trial.state != TrialState::finished, *trial.score, trial.number};
  }

  void know(const TrialRecord& trial) {
    ++count_of(counts_, trial.state);
    changes_.emplace(trial.change, trial.number);
    if (trial.state == TrialState::queued) queued_.insert(trial.number);
    if (trial.lease_until) leases_.emplace(*trial.lease_until, trial.number);
    if (trial.score) scores_.insert(rank_of(trial));
  }

  void forget(const TrialRecord& trial) {
    --count_of(counts_, trial.state);
    changes_.erase(trial.change);
    queued_.erase(trial.number);
    if (trial.lease_until) leases_.erase({*trial.lease_until, trial.number});
    if (trial.score) scores_.erase(rank_of(trial));
  }

  StudyRecord record_;
  std::string tuner_;
  std::optional<Time> tuner_until_;
  std::vector<TrialRecord> trials_;  // by number
  TrialCounts counts_;
  std::int64_t change_ = 0;
  std::map<std::int64_t, std::int64_t> changes_;    // to number
  std::set<std::int64_t> queued_;                   // numbers
  std::set<std::pair<Time, std::int64_t>> leases_;  // with number
  std::set<Rank> scores_;
};

/// Changes of trials that are made in one step, or not at all.
class Draft {
 public:
  // The trial as it will be after what was put so far; nothing if there is none.
  std::optional<TrialRecord> find(MemoryStudy& study, std::int64_t number) const {
    const auto drafted = newest_.find({&study, number});
    if (drafted != newest_.end()) return changes_[drafted->second].second;
    const auto* trial = study.find(number);
    return trial == nullptr ? std::nullopt : std::optional(*trial);
  }

  void put(MemoryStudy& study, TrialRecord trial) {
    newest_[{&study, trial.number}] = changes_.size();
    changes_.emplace_back(&study, std::move(trial));
  }

  void commit() {
    for (auto& [study, trial] : changes_) study->put(std::move(trial));
  }

 private:
  std::vector<std::pair<MemoryStudy*, TrialRecord>> changes_;
  std::map<std::pair<MemoryStudy*, std::int64_t>, std::size_t> newest_;  // in changes_
};

class MemoryStudies final : public StudyStore {
 public:
  Status create_study(const StudyRecord& study) override {
    FLEETFIT_TRY(check(study));
    const std::scoped_lock lock(mutex_);
    if (!studies_.try_emplace(study.name, study).second) return study_exists(study.name);
    return {};
  }
  Result<std::optional<StudyRecord>> find_study(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    const auto found = studies_.find(name);
    if (found == studies_.end()) return std::nullopt;
    return found->second.record();
  }
  Result<std::vector<StudyRecord>> list_studies() override {
    const std::scoped_lock lock(mutex_);
    std::vector<StudyRecord> list;
    for (const auto& [name, study] : studies_) list.push_back(study.record());
    return list;
  }
  Result<bool> remove_study(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    const auto found = studies_.find(name);
    if (found == studies_.end()) return false;
    studies_.erase(found);
    return true;
  }
  Status update_study(std::string_view name, double more_s, std::optional<double> more_j,
                      bool done) override {
    FLEETFIT_TRY(check_spent(more_s, more_j));
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) {
      auto& record = found->record();
      record.tuning_s += more_s;
      if (more_j) record.tuning_j = record.tuning_j.value_or(0) + *more_j;
      record.done = done;
    });
  }
  Result<bool> lead_study(std::string_view name, std::string_view tuner, Time now,
                          Time until) override {
    FLEETFIT_TRY(check_tuner(tuner));
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) { return found->lead(tuner, now, until); });
  }

  Result<bool> add_trials(std::string_view name, std::span<const TrialRecord> trials) override {
    for (const auto& trial : trials) FLEETFIT_TRY(check(trial));
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) {
      if (!run_on(trials, found->next_number())) return false;
      for (const auto& trial : trials) found->put(trial);
      return true;
    });
  }
  Result<std::optional<TrialRecord>> find_trial(std::string_view name,
                                                std::int64_t number) override {
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) {
      const auto* trial = found->find(number);
      return trial == nullptr ? std::nullopt : std::optional(*trial);
    });
  }
  Result<std::vector<TrialRecord>> list_changes(std::string_view name, std::int64_t since,
                                                std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) { return found->changes(since, limit); });
  }
  Result<std::vector<TrialRecord>> list_trials(std::string_view name, std::int64_t first,
                                               std::size_t limit, LevelDetail levels) override {
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](const MemoryStudy* found) {
      std::vector<TrialRecord> list;
      auto number = std::max<std::int64_t>(first, 0);
      for (; number < found->next_number() && list.size() < limit; ++number) {
        list.push_back(*found->find(number));
        if (levels == LevelDetail::none) list.back().levels.clear();
      }
      return list;
    });
  }
  Result<std::vector<TrialRecord>> best_trials(std::string_view name, std::size_t limit) override {
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](const MemoryStudy* found) { return found->best(limit); });
  }
  Result<TrialCounts> count_trials(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return study(name).map([](const MemoryStudy* found) { return found->counts(); });
  }

  Result<std::vector<TrialRecord>> claim_trials(std::string_view name, std::string_view worker,
                                                Time now, Time until, std::size_t limit) override {
    FLEETFIT_TRY(check_worker(worker));
    const std::scoped_lock lock(mutex_);
    return study(name).map([&](MemoryStudy* found) {
      std::vector<TrialRecord> claimed;
      for (const auto number : found->for_workers(now, limit)) {
        auto trial = *found->find(number);
        take(trial, worker, until);
        found->put(std::move(trial));
        claimed.push_back(*found->find(number));
      }
      return claimed;
    });
  }
  Result<Hold> renew(const Claim& claim, Time until, std::string_view progress) override {
    FLEETFIT_TRY(check_progress(progress));
    const std::scoped_lock lock(mutex_);
    FLEETFIT_ASSIGN(const auto found, study(claim.study));
    const auto* trial = found->find(claim.trial);
    if (trial == nullptr) return no_trial(claim.study, claim.trial);
    const Hold hold = hold_of(*trial, claim);
    if (hold != Hold::lost) found->renew(claim.trial, until, progress);
    return hold;
  }
  Result<Hold> save_structure(const Claim& claim, std::string_view structure,
                              std::string_view model_file) override {
    FLEETFIT_TRY(check_structure(structure, model_file));
    return change_one(claim, [&](TrialRecord& trial) {
      trial.structure = structure;
      trial.model_file = model_file;
    });
  }
  Result<std::vector<Hold>> end_levels(std::span<const LevelEnd> ends) override {
    for (const auto& end : ends) FLEETFIT_TRY(check(end));
    const std::scoped_lock lock(mutex_);
    Draft draft;
    std::vector<Hold> holds;
    for (const auto& end : ends) {
      FLEETFIT_ASSIGN(const auto hold, change(draft, end.claim, [&](TrialRecord& trial) {
                        return store::end_level(trial, end);
                      }));
      holds.push_back(hold);
    }
    draft.commit();
    return holds;
  }
  Result<Hold> give_up(const Claim& claim, TrialState state, std::string_view reason) override {
    FLEETFIT_TRY(check_end_by_worker(state, reason));
    return change_one(claim, [&](TrialRecord& trial) { store::give_up(trial, state, reason); });
  }
  Result<Hold> give_back(const Claim& claim) override {
    return change_one(claim, [](TrialRecord& trial) { store::give_back(trial); });
  }

  Result<std::vector<bool>> decide(std::string_view name,
                                   std::span<const TrialDecision> decisions) override {
    for (const auto& decision : decisions) FLEETFIT_TRY(check(decision));
    const std::scoped_lock lock(mutex_);
    FLEETFIT_ASSIGN(const auto found, study(name));
    Draft draft;
    std::vector<bool> effects;
    for (const auto& decision : decisions) {
      auto trial = draft.find(*found, trial_of(decision));
      if (!trial) return no_trial(name, trial_of(decision));
      FLEETFIT_ASSIGN(const auto effect, apply(*trial, decision));
      effects.push_back(effect != Effect::none);
      if (effect == Effect::changed) draft.put(*found, std::move(*trial));
    }
    draft.commit();
    return effects;
  }
  Result<bool> request_stop(std::string_view name, std::int64_t number,
                            std::string_view reason) override {
    FLEETFIT_TRY(check_stop(reason));
    const std::scoped_lock lock(mutex_);
    FLEETFIT_ASSIGN(const auto found, study(name));
    const auto* known = found->find(number);
    if (known == nullptr) return no_trial(name, number);
    auto trial = *known;
    if (!store::request_stop(trial, reason)) return false;
    found->put(std::move(trial));
    return true;
  }

  Result<std::optional<InferenceRecord>> find_inference(std::string_view structure,
                                                        std::string_view fingerprint,
                                                        std::string_view question) override {
    const std::scoped_lock lock(mutex_);
    const auto found = inferences_.find(InferenceKey(structure, fingerprint, question));
    if (found == inferences_.end()) return std::nullopt;
    return found->second;
  }
  Status save_inference(const InferenceRecord& record) override {
    FLEETFIT_TRY(check(record));
    const std::scoped_lock lock(mutex_);
    inferences_.insert_or_assign(
        InferenceKey(record.structure, record.device_fingerprint, record.question), record);
    return {};
  }
  Result<std::vector<InferenceRecord>> list_inferences(std::string_view study) override {
    const std::scoped_lock lock(mutex_);
    std::vector<InferenceRecord> list;
    for (const auto& [key, record] : inferences_)
      if (study.empty() || record.study == study) list.push_back(record);
    std::ranges::stable_sort(list, std::ranges::greater(), &InferenceRecord::found);
    return list;
  }

 private:
  using InferenceKey = std::tuple<std::string, std::string, std::string>;

  Result<MemoryStudy*> study(std::string_view name) {
    const auto found = studies_.find(name);
    if (found == studies_.end()) return no_study(name);
    return &found->second;
  }

  // Lets `body`, which may fail, change a claimed trial if it is still held.
  template <class Body>
  Result<Hold> change(Draft& draft, const Claim& claim, const Body& body) {
    FLEETFIT_ASSIGN(const auto found, study(claim.study));
    auto trial = draft.find(*found, claim.trial);
    if (!trial) return no_trial(claim.study, claim.trial);
    const Hold hold = hold_of(*trial, claim);
    if (hold == Hold::lost) return hold;
    if (const Status done = body(*trial); !done) return tl::unexpected(done.error());
    draft.put(*found, std::move(*trial));
    return hold;
  }

  template <class Body>
  Result<Hold> change_one(const Claim& claim, const Body& body) {
    const std::scoped_lock lock(mutex_);
    Draft draft;
    auto hold = change(draft, claim, [&](TrialRecord& trial) {
      body(trial);
      return Status{};
    });
    draft.commit();
    return hold;
  }

  std::mutex mutex_;
  std::map<std::string, MemoryStudy, std::less<>> studies_;
  std::map<InferenceKey, InferenceRecord> inferences_;
};

}  // namespace

std::unique_ptr<StudyStore> make_memory_studies() { return std::make_unique<MemoryStudies>(); }

}  // namespace fleetfit::store
