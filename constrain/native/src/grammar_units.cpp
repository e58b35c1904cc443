#include "constrain/grammar_units.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace constrain {
namespace {

constexpr uint32_t kWide = 8;            // bytes from which on a state is worth a table
constexpr size_t kMostMembers = 64;      // states of a region of its own

bool unite(ByteSet& into, const ByteSet& other) {
  bool grown = false;
  for (size_t i = 0; i < into.size(); ++i) {
    grown = grown || (other[i] & ~into[i]) != 0;
    into[i] |= other[i];
  }
  return grown;
}

void add_ranges(ByteSet& set, std::span<const GrammarTables::Range> ranges) {
  for (const auto& range : ranges) {
    for (uint32_t byte = range.first; byte <= range.last; ++byte) {
      add_byte(set, static_cast<uint8_t>(byte));
    }
  }
}

}  // namespace

GrammarUnits::GrammarUnits(const GrammarTables& tables, ByteRegions& regions,
                           const std::vector<ByteSet>& foreign_first)
    : tables_(tables), regions_(regions) {
  units_.assign(tables.states(), {kUnknown, 0});
  members_.resize(tables.states());
  find_nets();
  find_exits(foreign_first);
}

// A net is what its start state reaches by bytes, marks and returns; nets do not overlap.
void GrammarUnits::find_nets() {
  const uint32_t n = tables_.states();
  std::vector<uint32_t> starts{tables_.start()};
  for (uint32_t s = 0; s < n; ++s) {
    for (const auto& call : tables_.calls(s)) starts.push_back(call.callee);
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  net_.assign(n, GrammarTables::kNone);
  rank_.assign(n, 0);
  for (const uint32_t start : starts) {
    if (net_[start] != GrammarTables::kNone) continue;
    const auto number = static_cast<uint32_t>(net_states_.size());
    std::vector<uint32_t> states{start};
    net_[start] = number;
    const auto reach = [&](uint32_t target) {
      if (net_[target] != GrammarTables::kNone) return;
      net_[target] = number;
      states.push_back(target);
    };
    for (size_t i = 0; i < states.size(); ++i) {
      const uint32_t s = states[i];
      rank_[s] = static_cast<uint32_t>(i);
      for (const auto& range : tables_.ranges(s)) reach(range.target);
      for (const auto& mark : tables_.marks(s)) reach(mark.target);
      for (const auto& call : tables_.calls(s)) reach(call.back);
      for (const auto& foreign : tables_.foreigns(s)) reach(foreign.back);
    }
    net_states_.push_back(std::move(states));
  }
  net_units_.assign(net_states_.size(), {kUnknown, 0});
}

// The least sets that agree with each other, from empty ones up.
void GrammarUnits::find_exits(const std::vector<ByteSet>& foreign_first) {
  const uint32_t n = tables_.states();
  std::vector<ByteSet> first(n);      // own bytes and exits
  follow_.assign(net_states_.size(), {});
  exits_.assign(n, {});
  for (uint32_t s = 0; s < n; ++s) {
    add_ranges(first[s], tables_.ranges(s));
    for (const auto& foreign : tables_.foreigns(s)) unite(exits_[s], foreign_first[foreign.number]);
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (uint32_t s = n; s-- > 0;) {
      if (net_[s] == GrammarTables::kNone) continue;   // not reachable
      for (const auto& call : tables_.calls(s)) {
        unite(exits_[s], first[call.callee]);
        ByteSet& behind = follow_[net_[call.callee]];
        grown = unite(behind, first[call.back]) || grown;
      }
      for (const auto& mark : tables_.marks(s)) unite(exits_[s], first[mark.target]);
      if (tables_.is_final(s)) unite(exits_[s], follow_[net_[s]]);
      grown = unite(first[s], exits_[s]) || grown;
    }
  }
}

const GrammarUnits::Unit& GrammarUnits::unit(uint32_t state) {
  if (units_[state].region == kUnknown) make(state);
  return units_[state];
}

void GrammarUnits::make(uint32_t state) {
  ByteSet own{};
  add_ranges(own, tables_.ranges(state));
  int width = 0;
  for (const uint64_t word : own) width += std::popcount(word);
  if (width < static_cast<int>(kWide)) {
    units_[state] = {GrammarTables::kNone, 0};
    return;
  }
  std::vector<uint32_t> members{state};
  std::unordered_map<uint32_t, uint32_t> number{{state, 0}};
  std::vector<ByteRegion::Range> ranges;
  std::vector<ByteSet> exits;
  for (size_t i = 0; i < members.size(); ++i) {
    exits.push_back(exits_[members[i]]);
    for (const auto& range : tables_.ranges(members[i])) {
      const auto [at, fresh] =
          number.try_emplace(range.target, static_cast<uint32_t>(members.size()));
      if (fresh) members.push_back(range.target);
      ranges.push_back({static_cast<uint32_t>(i), range.first, range.last, at->second});
    }
    if (members.size() > kMostMembers) {
      const uint32_t net = net_[state];
      if (net_units_[net].region == kUnknown) make_net(net);
      units_[state] = {net_units_[net].region, rank_[state]};
      return;
    }
  }
  units_[state] = {regions_.intern(std::move(ranges), std::move(exits)), 0};
  members_[state] = std::move(members);
}

void GrammarUnits::make_net(uint32_t net) {
  std::vector<ByteRegion::Range> ranges;
  std::vector<ByteSet> exits;
  for (const uint32_t s : net_states_[net]) {
    exits.push_back(exits_[s]);
    for (const auto& range : tables_.ranges(s)) {
      ranges.push_back({rank_[s], range.first, range.last, rank_[range.target]});
    }
  }
  net_units_[net] = {regions_.intern(std::move(ranges), std::move(exits)), 0};
}

uint32_t GrammarUnits::state_behind(uint32_t state, uint32_t number) const {
  const std::vector<uint32_t>& members = members_[state];
  return members.empty() ? net_states_[net_[state]][number] : members[number];
}

size_t GrammarUnits::bytes() const {
  size_t sum = sizeof(*this) + tables_.states() * (sizeof(ByteSet) + sizeof(Unit) + 40);
  for (const auto& members : members_) sum += members.capacity() * sizeof(uint32_t);
  return sum;
}

}  // namespace constrain
