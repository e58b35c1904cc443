#include "constrain/grammar_tables.hpp"

#include <algorithm>
#include <bitset>
#include <queue>

#include "constrain/errors.hpp"

namespace constrain {
namespace {

constexpr int32_t kVersion = 2;
constexpr size_t kMostDense = size_t{1} << 23;    // entries of 4 bytes

[[noreturn]] void malformed(const char* what) {
  throw Error(std::string("malformed grammar program: ") + what);
}

// Reads the table front to back.
class Reader {
 public:
  explicit Reader(std::span<const int32_t> table) : table_(table) {}
  uint32_t count() {
    const uint32_t value = word();
    if (value > table_.size()) malformed("a count is too large");
    return value;
  }
  uint32_t word() {
    if (at_ == table_.size()) malformed("too short");
    const int32_t value = table_[at_++];
    if (value < 0) malformed("a negative number");
    return static_cast<uint32_t>(value);
  }
  uint32_t below(uint32_t bound) {
    const uint32_t value = word();
    if (value >= bound) malformed("a number is out of bounds");
    return value;
  }
  std::vector<uint32_t> begins(uint32_t owners, uint32_t items) {
    std::vector<uint32_t> begin(owners + 1);
    for (uint32_t& value : begin) value = word();
    if (begin.front() != 0 || begin.back() != items || !std::is_sorted(begin.begin(), begin.end())) {
      malformed("offsets");
    }
    return begin;
  }
  std::vector<GrammarTables::Range> ranges(uint32_t items, uint32_t targets) {
    std::vector<GrammarTables::Range> result(items);
    for (auto& range : result) {
      const uint32_t bytes = below(1u << 16);
      range.first = static_cast<uint8_t>(bytes & 0xFF);
      range.last = static_cast<uint8_t>(bytes >> 8);
      range.target = below(targets);
      if (range.first > range.last) malformed("a range");
    }
    return result;
  }
  bool done() const { return at_ == table_.size(); }

 private:
  std::span<const int32_t> table_;
  size_t at_ = 0;
};

void check_order(const std::vector<uint32_t>& begin,
                 const std::vector<GrammarTables::Range>& ranges) {
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    for (uint32_t i = begin[s] + 1; i < begin[s + 1]; ++i) {
      if (ranges[i - 1].last >= ranges[i].first) malformed("ranges overlap");
    }
  }
}

}  // namespace

GrammarTables::GrammarTables(std::span<const int32_t> table,
                             const std::vector<uint8_t>& possible) {
  read(table, static_cast<uint32_t>(possible.size()));
  if (std::ranges::find(possible, 0) != possible.end()) keep_productive(possible);
  pure_.resize(states());
  plain_.resize(states());
  for (uint32_t s = 0; s < states(); ++s) {
    const bool extra = !calls(s).empty() || !marks(s).empty() || !foreigns(s).empty();
    pure_[s] = is_final(s) && !extra && !reads(s);
    plain_[s] = !is_final(s) && !extra && reads(s);
  }
  make_dense();
}

void GrammarTables::read(std::span<const int32_t> table, uint32_t parts) {
  Reader in(table);
  if (in.word() != kVersion) malformed("version");
  const uint32_t states = in.count(), ranges = in.count(), calls = in.count(), marks = in.count();
  const uint32_t foreigns = in.count();
  const uint32_t obligations = in.count(), obligation_ranges = in.count();
  if (states == 0 || obligations == 0) malformed("no state");
  start_ = in.below(states);
  range_begin_ = in.begins(states, ranges);
  call_begin_ = in.begins(states, calls);
  mark_begin_ = in.begins(states, marks);
  foreign_begin_ = in.begins(states, foreigns);
  final_.resize(states);
  for (uint8_t& flag : final_) flag = static_cast<uint8_t>(in.below(2));
  ranges_ = in.ranges(ranges, states);
  calls_.resize(calls);
  for (Call& call : calls_) {
    call.callee = in.below(states);
    call.back = in.below(states);
    call.rank = in.word();
  }
  marks_.resize(marks);
  for (Mark& mark : marks_) {
    mark.obligation = in.below(obligations);
    mark.target = in.below(states);
  }
  foreigns_.resize(foreigns);
  for (Foreign& foreign : foreigns_) {
    foreign.number = in.below(parts);
    foreign.back = in.below(states);
  }
  obligation_begin_ = in.begins(obligations, obligation_ranges);
  obligation_end_.resize(obligations);
  for (uint8_t& flag : obligation_end_) flag = static_cast<uint8_t>(in.below(2));
  obligation_ranges_ = in.ranges(obligation_ranges, obligations);
  if (!in.done()) malformed("too long");
  check_order(range_begin_, ranges_);
  check_order(obligation_begin_, obligation_ranges_);
  for (uint32_t s = 0; s < states; ++s) {
    for (const Call& call : this->calls(s)) {
      // A net is not entered twice without a byte in between.
      if (is_final(call.callee) || !this->marks(call.callee).empty()) malformed("a callee");
      for (const Call& inner : this->calls(call.callee)) {
        if (inner.rank <= call.rank) malformed("ranks");
      }
    }
  }
}

uint32_t GrammarTables::find(std::span<const Range> ranges, uint8_t byte) {
  size_t low = 0, high = ranges.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ranges[middle].last < byte) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < ranges.size() && ranges[low].first <= byte ? ranges[low].target : kNone;
}

namespace {

// Keeps the items that `keep` says, in their lists.
template <class T, class Keep>
void filter(std::vector<T>& items, std::vector<uint32_t>& begin, Keep keep) {
  std::vector<T> kept;
  uint32_t from = 0;
  for (size_t s = 0; s + 1 < begin.size(); ++s) {
    const uint32_t to = begin[s + 1];
    for (uint32_t i = from; i < to; ++i) {
      if (keep(items[i])) kept.push_back(items[i]);
    }
    from = to;
    begin[s + 1] = static_cast<uint32_t>(kept.size());
  }
  items = std::move(kept);
}

}  // namespace

void GrammarTables::keep_productive(const std::vector<uint8_t>& possible) {
  std::vector<uint32_t> lengths;
  for (const uint8_t p : possible) lengths.push_back(p ? 1 : kFar);
  measure(lengths);
  const std::vector<uint32_t> distance = std::move(distance_);
  distance_.clear();
  if (distance[start_] >= kFar) {
    throw UnsatisfiableConstraint("every text of the grammar needs a value that does not exist");
  }
  const auto ends = [&](uint32_t state) { return distance[state] < kFar; };
  filter(ranges_, range_begin_, [&](const Range& r) { return ends(r.target); });
  filter(calls_, call_begin_, [&](const Call& c) { return ends(c.callee) && ends(c.back); });
  filter(marks_, mark_begin_, [&](const Mark& m) { return ends(m.target); });
  filter(foreigns_, foreign_begin_,
         [&](const Foreign& f) { return possible[f.number] != 0 && ends(f.back); });
}

void GrammarTables::make_dense() {
  std::bitset<257> cuts;
  for (const Range& range : ranges_) {
    cuts.set(range.first);
    cuts.set(range.last + 1u);
  }
  uint32_t current = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && cuts[byte]) ++current;
    class_of_[byte] = static_cast<uint8_t>(current);
  }
  classes_ = current + 1;
  if (size_t{states()} * classes_ > kMostDense) return;
  dense_.assign(size_t{states()} * classes_, kNone);
  for (uint32_t s = 0; s < states(); ++s) {
    for (const Range& range : ranges(s)) {
      for (uint32_t c = class_of_[range.first]; c <= class_of_[range.last]; ++c) {
        dense_[size_t{s} * classes_ + c] = range.target;
      }
    }
  }
}

// Knuth's generalisation of Dijkstra's algorithm: a call costs its callee and what follows it.
void GrammarTables::measure(std::span<const uint32_t> lengths) {
  const uint32_t n = states();
  distance_.assign(n, kFar);
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> before(n), called(n);
  // before[t]: (s, extra) with s -> t; a call of c returning to r is an edge r -> s that costs
  // distance(c), known only when c is: it is relaxed from both sides.
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> returns(n);
  for (uint32_t s = 0; s < n; ++s) {
    for (const Range& range : ranges(s)) {
      if (before[range.target].empty() || before[range.target].back().first != s) {
        before[range.target].push_back({s, 1});
      }
    }
    for (const Mark& mark : marks(s)) before[mark.target].push_back({s, 0});
    for (const Foreign& foreign : foreigns(s)) {
      before[foreign.back].push_back({s, lengths[foreign.number]});
    }
    for (const Call& call : calls(s)) {
      returns[call.back].push_back({s, call.callee});
      called[call.callee].push_back({s, call.back});
    }
  }
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  const auto improve = [&](uint32_t state, uint32_t distance) {
    if (distance >= distance_[state]) return;
    distance_[state] = distance;
    queue.push({distance, state});
  };
  const auto sum = [](uint32_t a, uint32_t b) { return std::min(kFar, a + b); };
  for (uint32_t s = 0; s < n; ++s) {
    if (is_final(s)) improve(s, 0);
  }
  while (!queue.empty()) {
    const auto [distance, t] = queue.top();
    queue.pop();
    if (distance != distance_[t]) continue;
    for (const auto& [s, extra] : before[t]) improve(s, sum(distance, extra));
    for (const auto& [s, callee] : returns[t]) improve(s, sum(distance, distance_[callee]));
    for (const auto& [s, back] : called[t]) improve(s, sum(distance, distance_[back]));
  }
}

size_t GrammarTables::bytes() const {
  return sizeof(*this) + ranges_.size() * sizeof(Range) + calls_.size() * sizeof(Call) +
         marks_.size() * sizeof(Mark) + foreigns_.size() * sizeof(Foreign) +
         obligation_ranges_.size() * sizeof(Range) +
         dense_.size() * 4 + size_t{states()} * 24;
}

}  // namespace constrain
