#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "fleetfit/adapt/prepared_subnet.h"

namespace fleetfit::adapt {

/// Subnets that are ready to run, under a limit of memory. A thread in the background prepares
/// those that are wanted; the ones wanted least and used longest ago make room. Safe to use from
/// many threads, but what it gives belongs to one thread at a time.
class SubnetCache {
 public:
  // Shared by the cache and those that run the subnet: one that is still running outlives its place
  // in the cache.
  using Handle = std::shared_ptr<PreparedSubnet>;

  /// Borrows the preparer.
  SubnetCache(SubnetPreparer& preparer, std::size_t memory_bytes);
  ~SubnetCache();
  SubnetCache(const SubnetCache&) = delete;
  SubnetCache& operator=(const SubnetCache&) = delete;

  /// The subnet if it is ready, else nothing. Never waits for one to be prepared.
  Handle find(const std::string& subnet);

  /// From now on these are wanted, the most important first: they are prepared in the background as
  /// far as memory allows. The first two are kept even beyond that.
  void want(std::vector<std::string> subnets);

  /// Waits until nothing is left to prepare.
  void wait_until_idle();

  struct Failure {
    std::string subnet = {};
    Error error = {};
  };
  /// What could not be prepared in the background since the last call. Not tried again.
  std::vector<Failure> take_failures();

  std::size_t bytes() const;       ///< of all that are ready
  std::size_t peak_bytes() const;  ///< the most so far
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Ready {
    Handle handle;
    std::size_t bytes = 0;
  };

  void work(const std::stop_token& stop);
  const std::string* next_to_prepare() const;
  void keep(const std::string& subnet, Handle handle);
  void make_room();
  void touch(const std::string& subnet);
  std::size_t rank(const std::string& subnet) const;

  SubnetPreparer& preparer_;
  std::size_t memory_bytes_;
  mutable std::mutex mutex_;  // guards all below; never held while a subnet is prepared
  std::condition_variable_any changed_;
  std::map<std::string, Ready> ready_;
  std::list<std::string> by_use_;  // the last used first
  std::vector<std::string> wanted_;
  std::size_t prepared_for_nothing_ = 0;  // wanted ones from here on have no room
  std::map<std::string, Error> failed_;
  std::vector<Failure> failures_;
  std::size_t bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  bool busy_ = false;
  std::jthread worker_;  // last: ends before what it works on
};

}  // namespace fleetfit::adapt
