#include "tests/contract/fleet_store_contract.h"

#include <functional>

/// What every store must do with tokens, agents, events, files and the audit.
namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Tokens

TEST_P(FleetStoreContract, KeepsTokensAndFindsThemByTheirHashes) {
  auto agent = example_token('a');
  auto admin = TokenRecord{.role = Role::admin, .hash = example_hash('b')};
  EXPECT_EQ(fleet().add_token(agent).value(), agent.id = 1);
  EXPECT_EQ(fleet().add_token(admin).value(), admin.id = 2);
  EXPECT_EQ(fleet().find_token(example_hash('a')).value(), agent);
  EXPECT_EQ(fleet().find_token(example_hash('b')).value(), admin);
  EXPECT_EQ(fleet().find_token(example_hash('c')).value(), std::nullopt);
  EXPECT_THAT(fleet().list_tokens().value(), ElementsAre(agent, admin));
}

TEST_P(FleetStoreContract, HasOneTokenOfAHash) {
  ASSERT_TRUE(fleet().add_token(example_token('a')));
  EXPECT_EQ(refusal(fleet().add_token(example_token('a'))),
            "token 'token a': there is one of the same hash already");
  EXPECT_EQ(fleet().list_tokens().value().size(), 1u);
}

TEST_P(FleetStoreContract, RevokesATokenOnce) {
  const auto id = fleet().add_token(example_token('a')).value();
  EXPECT_EQ(fleet().revoke_token(id, date(70)), true);
  EXPECT_EQ(fleet().revoke_token(id, date(80)), false);
  EXPECT_EQ(fleet().revoke_token(id + 1, date(80)), false);
  EXPECT_EQ(fleet().find_token(example_hash('a')).value()->revoked, date(70));
}

// Agents

TEST_P(FleetStoreContract, KeepsWhatAnAgentSaysOfItself) {
  EXPECT_EQ(fleet().find_agent("pi4").value(), example_agent());
  EXPECT_EQ(fleet().find_agent("pi").value(), std::nullopt);
}

TEST_P(FleetStoreContract, ReplacesAnAgentButForItsDateOfCreation) {
  save({{.name = "pi4", .version = "1.0", .hardware = "Pi", .created = date(99)}});
  const AgentRecord expected{.name = "pi4",
                             .version = "1.0",
                             .hardware = "Pi",
                             .created = date(2),
                             .last_seen = date(3),
                             .token = 3};
  EXPECT_EQ(fleet().find_agent("pi4").value(), expected);
  save({{.name = "pi4", .last_seen = date(5)}});
  EXPECT_EQ(fleet().find_agent("pi4").value()->last_seen, date(5));
}

TEST_P(FleetStoreContract, CountsAgentsByTheTokenThatRegisteredThemFirst) {
  save({{.name = "a", .token = 3}, {.name = "b", .token = 4}, {.name = "c"}});
  save({{.name = "a", .token = 4}});
  EXPECT_EQ(fleet().count_agents_of(3), 2) << "a and pi4";
  EXPECT_EQ(fleet().count_agents_of(4), 1);
  EXPECT_EQ(fleet().count_agents_of(5), 0);
  EXPECT_EQ(fleet().remove_agent("a"), true);
  EXPECT_EQ(fleet().count_agents_of(3), 1);
}

TEST_P(FleetStoreContract, ListsAgentsPageByPage) {
  save({{.name = "b"}, {.name = "a"}, {.name = "Z"}});
  EXPECT_THAT(names(fleet().list_agents({.limit = 2})), ElementsAre("Z", "a"));
  EXPECT_THAT(names(fleet().list_agents({.after = "a", .limit = 2})), ElementsAre("b", "pi4"));
  EXPECT_THAT(names(fleet().list_agents({.after = "pi4"})), IsEmpty());
}

TEST_P(FleetStoreContract, LeavesProbesOutWhereTheyAreNotWanted) {
  auto agent = example_agent();
  EXPECT_THAT(fleet().list_agents({}).value(), ElementsAre(agent));
  agent.probe = "{}";
  EXPECT_THAT(fleet().list_agents({.probes = false}).value(), ElementsAre(agent));
}

TEST_P(FleetStoreContract, FindsAgentsByPartsOfNameOrHardware) {
  save({{.name = "Rack-07", .hardware = "Xeon E5"},
        {.name = "rack_08", .hardware = "EPYC 100%"},
        {.name = "car", .hardware = R"(Orin\NX)"}});
  const auto found = [&](const std::string& query) {
    return names(fleet().list_agents({.query = query}));
  };
  EXPECT_THAT(found("RACK"), ElementsAre("Rack-07", "rack_08"));
  EXPECT_THAT(found("xeon"), ElementsAre("Rack-07"));
  EXPECT_THAT(found("cortex-a7"), ElementsAre("pi4"));
  EXPECT_THAT(found("k_0"), ElementsAre("rack_08"));
  EXPECT_THAT(found("%"), ElementsAre("rack_08"));
  EXPECT_THAT(found(R"(n\n)"), ElementsAre("car"));
  EXPECT_THAT(found("rack-07xeon"), IsEmpty());
}

TEST_P(FleetStoreContract, TellsAgentsThatAreOnlineFromOthers) {
  save({{.name = "never"}, {.name = "now", .last_seen = date(60)}});
  EXPECT_THAT(names(fleet().list_agents({.seen_since = date(60)})), ElementsAre("now"));
  EXPECT_THAT(names(fleet().list_agents({.seen_before = date(60)})), ElementsAre("pi4"));
  EXPECT_THAT(names(fleet().list_agents({.never_seen = true})), ElementsAre("never"));
  EXPECT_EQ(fleet().count_agents(date(60)).value(),
            (AgentCounts{.all = 3, .online = 1, .never = 1}));
}

TEST_P(FleetStoreContract, RemovesAnAgentWithTheJobsThatHaveNotEnded) {
  const auto ended = add(wanted_job());
  claim(date(0));
  ASSERT_EQ(end({.job = ended, .attempt = 1}), Ended::now);
  const auto running = add(wanted_job());
  claim(date(1));
  const auto waiting = add(wanted_job());
  add_events({example_event(5)});
  EXPECT_EQ(fleet().remove_agent("pi4"), true);
  EXPECT_EQ(fleet().remove_agent("pi4"), false);
  EXPECT_EQ(fleet().find_agent("pi4").value(), std::nullopt);
  EXPECT_EQ(fleet().find_job(running).value(), std::nullopt);
  EXPECT_EQ(fleet().find_job(waiting).value(), std::nullopt);
  EXPECT_EQ(job(ended).state, JobState::finished);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.finished = 1}));
  EXPECT_EQ(end({.job = running, .attempt = 1}), Ended::lost);
  EXPECT_EQ(fleet().list_events({})->size(), 1u);
  EXPECT_EQ(fleet().last_sequence("pi4"), 0) << "a device of that name begins anew";
}

// Events

TEST_P(FleetStoreContract, NumbersEventsAsTheyCome) {
  add_events({example_event(1), {.kind = "device", .time = date(1)}});
  auto first = example_event(1);
  first.id = 1;
  const EventRecord second{.id = 2, .kind = "device", .time = date(1)};
  EXPECT_THAT(fleet().list_events({}).value(), ElementsAre(first, second));
  EXPECT_EQ(fleet().newest_event(), 2);
}

TEST_P(FleetStoreContract, PassesOverEventsThatItKnows) {
  add_events({example_event(1), example_event(2)});
  auto other = example_event(1);
  other.agent = "other";
  const std::vector<EventRecord> again{example_event(2), example_event(4), other,
                                       example_event(3), example_event(5), example_event(5)};
  EXPECT_EQ(fleet().add_events(again), 3u) << "4, the other's 1, and 5";
  EXPECT_EQ(fleet().last_sequence("pi4"), 5);
  EXPECT_EQ(fleet().last_sequence("other"), 1);
  EXPECT_EQ(fleet().last_sequence("nobody"), 0);
  EXPECT_EQ(fleet().add_events(again), 0u);
  EXPECT_EQ(fleet().newest_event(), 5);
}

TEST_P(FleetStoreContract, TakesAnyNumberOfEventsThatHaveNoSequence) {
  add_events({{.agent = "pi4", .kind = "job"}, {.agent = "pi4", .kind = "job"}});
  add_events({{.agent = "pi4", .kind = "job"}});
  EXPECT_EQ(fleet().last_sequence("pi4"), 0);
  EXPECT_THAT(ids(fleet().list_events({.agent = "pi4"})), ElementsAre(1, 2, 3));
}

TEST_P(FleetStoreContract, ListsEventsByWhatIsAskedFor) {
  add_events({example_event(1),
              example_event(2, "latency"),
              {.kind = "latency"},
              example_event(3),
              example_event(4, "latency")});
  auto without_job = example_event(5);
  without_job.job.reset();
  add_events({without_job});
  EXPECT_THAT(ids(fleet().list_events({.agent = "pi4"})), ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(ids(fleet().list_events({.agent = ""})), ElementsAre(3));
  EXPECT_THAT(ids(fleet().list_events({.kind = "latency"})), ElementsAre(2, 3, 5));
  EXPECT_THAT(ids(fleet().list_events({.agent = "pi4", .kind = "latency"})), ElementsAre(2, 5));
  EXPECT_THAT(ids(fleet().list_events({.job = 7})), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(ids(fleet().list_events({.job = 8})), IsEmpty());
  EXPECT_THAT(ids(fleet().list_events({.after = 4})), ElementsAre(5, 6));
  EXPECT_THAT(ids(fleet().list_events({.after = 1, .limit = 2})), ElementsAre(2, 3));
  EXPECT_THAT(ids(fleet().list_events({.newest = true, .limit = 2})), ElementsAre(5, 6));
  EXPECT_THAT(ids(fleet().list_events({.agent = "pi4", .after = 2, .newest = true, .limit = 9})),
              ElementsAre(4, 5, 6));
}

TEST_P(FleetStoreContract, ForgetsOldEventsButNotHowFarItWas) {
  add_events({example_event(1), example_event(2), example_event(3)});
  EXPECT_EQ(fleet().remove_events_before(date(30)), 2);
  EXPECT_THAT(ids(fleet().list_events({})), ElementsAre(3));
  EXPECT_EQ(fleet().remove_events_before(date(31)), 1);
  EXPECT_EQ(fleet().newest_event(), 3);
  EXPECT_EQ(fleet().add_events(std::vector{example_event(3)}), 0u);
  add_events({example_event(4)});
  EXPECT_THAT(ids(fleet().list_events({})), ElementsAre(4));
}

// Files and audit

TEST_P(FleetStoreContract, KeepsFilesByTheirHashes) {
  auto newer = example_file('b');
  newer.created = date(9);
  ASSERT_TRUE(fleet().save_file(newer));
  ASSERT_TRUE(fleet().save_file(example_file('a')));
  EXPECT_EQ(fleet().find_file(example_hash('a')).value(), example_file('a'));
  EXPECT_EQ(fleet().find_file(example_hash('c')).value(), std::nullopt);
  EXPECT_THAT(fleet().list_files(9).value(), ElementsAre(newer, example_file('a')));
  EXPECT_THAT(fleet().list_files(1).value(), ElementsAre(newer));
  newer.name = "other.onnx";
  ASSERT_TRUE(fleet().save_file(newer));
  EXPECT_EQ(fleet().find_file(example_hash('b')).value()->name, "other.onnx");
}

TEST_P(FleetStoreContract, KeepsWhoDidWhat) {
  for (const char* action : {"a", "b", "c"}) ASSERT_TRUE(fleet().add_audit(example_entry(action)));
  auto newest = example_entry("c");
  newest.id = 3;
  EXPECT_THAT(ids(fleet().list_audit(0, 9)), ElementsAre(3, 2, 1));
  EXPECT_THAT(fleet().list_audit(0, 1).value(), ElementsAre(newest));
  EXPECT_THAT(ids(fleet().list_audit(3, 1)), ElementsAre(2));
}

// Bad records

TEST_P(FleetStoreContract, RefusesTokensAndFilesWithoutARealHash) {
  const auto of_token = [&](const TokenRecord& token) { return refusal(fleet().add_token(token)); };
  EXPECT_EQ(of_token({.hash = "abc"}),
            "token: hash is not a SHA-256 of 64 small hexadecimal digits");
  EXPECT_THAT(of_token({.hash = example_hash('A')}), HasSubstr("token: hash is not"));
  EXPECT_EQ(of_token({.name = "\xff", .hash = example_hash('a')}), "token: name is not UTF-8");
  EXPECT_THAT(refusal(fleet().save_file({.hash = "../../etc/passwd", .kind = "onnx"})),
              HasSubstr("file: hash is not"));
  EXPECT_EQ(refusal(fleet().save_file({.hash = example_hash('a'), .kind = "onnx", .bytes = -1})),
            "file: bytes is -1, below zero");
  EXPECT_THAT(fleet().list_tokens().value(), IsEmpty());
  EXPECT_THAT(fleet().list_files(9).value(), IsEmpty());
}

TEST_P(FleetStoreContract, RefusesAllAgentsIfOneIsBad) {
  const auto refused = [&](const AgentRecord& bad) {
    return refusal(fleet().save_agents(std::vector<AgentRecord>{{.name = "good"}, bad}));
  };
  EXPECT_EQ(refused({}), "agent: name is empty");
  EXPECT_EQ(refused({.name = std::string("a\0b", 3)}), "agent: name contains a NUL character");
  EXPECT_EQ(refused({.name = "a", .hardware = "\xc0\x80"}), "agent: hardware is not UTF-8");
  EXPECT_THAT(refused({.name = "a", .probe = "{"}), HasSubstr("agent: probe"));
  EXPECT_EQ(refused({.name = "a", .serving = "[]"}), "agent: serving is not a JSON object");
  EXPECT_THAT(names(fleet().list_agents({})), ElementsAre("pi4"));
}

TEST_P(FleetStoreContract, RefusesAllEventsIfOneIsBad) {
  const auto refused = [&](const EventRecord& bad) {
    return refusal(fleet().add_events(std::vector{example_event(1), bad}));
  };
  EXPECT_EQ(refused({}), "event: kind is empty");
  EXPECT_EQ(refused({.sequence = 1, .kind = "log"}),
            "event: agent is empty though there is a sequence");
  EXPECT_EQ(refused({.sequence = -1, .kind = "log"}), "event: sequence is -1, below zero");
  EXPECT_EQ(refused({.kind = "log", .body = "1"}), "event: body is not a JSON object");
  EXPECT_EQ(fleet().newest_event(), 0);
  EXPECT_EQ(refusal(fleet().add_audit({})), "audit: action is empty");
  EXPECT_THAT(fleet().list_audit(0, 9).value(), IsEmpty());
}

TEST_P(FleetStoreContract, RefusesQueriesThatNobodyTypes) {
  EXPECT_EQ(refusal(fleet().list_agents({.query = std::string(1001, '%')})),
            "filter: query has more than 1000 bytes");
  EXPECT_THAT(names(fleet().list_agents({.query = std::string(1000, '%')})), IsEmpty());
  EXPECT_EQ(refusal(fleet().list_agents({.query = "\xff"})), "filter: query is not UTF-8");
  EXPECT_EQ(refusal(fleet().list_agents({.after = std::string(1, '\0')})),
            "filter: after contains a NUL character");
}

INSTANTIATE_TEST_SUITE_P(Kinds, FleetStoreContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
