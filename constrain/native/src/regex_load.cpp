// Reading regex programs: classes of code points, then parts from the leaves up.
//
// The format is documented in constrain/regex/program.py; the numbers here and there must agree.
#include <algorithm>
#include <string>
#include <utility>

#include "constrain/errors.hpp"
#include "regex_terms.hpp"

namespace constrain::regex {

namespace {

constexpr int32_t kVersion = 1;
constexpr uint32_t kMaxNesting = 4096;
constexpr uint32_t kMaxBits = 32;
constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kAfterSurrogates = 0xE000;

enum Op : int32_t {
  kOpSet = 1, kOpSeq, kOpAlt, kOpRepeat, kOpLook, kOpBehind, kOpEnd, kOpAutomaton
};

struct Interval {
  uint32_t first, last;
};

class Reader {
 public:
  explicit Reader(std::span<const int32_t> program) : program_(program) {}

  int32_t next() {
    if (at_ >= program_.size()) throw Error("regex program: it ends too early");
    return program_[at_++];
  }
  uint32_t count(const char* what) {
    const int32_t value = next();
    if (value < 0 || static_cast<size_t>(value) > program_.size()) {
      throw Error(std::string("regex program: bad number of ") + what);
    }
    return static_cast<uint32_t>(value);
  }
  uint32_t below(size_t bound, const char* what) {
    const int32_t value = next();
    if (value < 0 || static_cast<size_t>(value) >= bound) {
      throw Error(std::string("regex program: bad ") + what);
    }
    return static_cast<uint32_t>(value);
  }
  bool done() const { return at_ == program_.size(); }

 private:
  std::span<const int32_t> program_;
  size_t at_ = 0;
};

std::vector<std::vector<Interval>> read_sets(Reader& reader, uint32_t count) {
  std::vector<std::vector<Interval>> sets(count);
  for (auto& set : sets) {
    const uint32_t n = reader.count("intervals");
    uint32_t after = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t first = reader.below(size_t{kMaxCodePoint} + 1, "code point");
      const uint32_t last = reader.below(size_t{kMaxCodePoint} + 1, "code point");
      if (last < first || first < after) throw Error("regex program: intervals out of order");
      after = last + 1;
      // Surrogates occur in no text.
      if (first < kFirstSurrogate) set.push_back({first, std::min(last, kFirstSurrogate - 1)});
      if (last >= kAfterSurrogates) set.push_back({std::max(first, kAfterSurrogates), last});
    }
  }
  return sets;
}

// Partition refinement: the intervals between all bounds are split by one set after the other.
// Costs the sum of the sets' sizes.
std::vector<uint32_t> classify(const std::vector<std::vector<Interval>>& sets, Loaded& loaded) {
  std::vector<uint32_t> bounds = {0, kFirstSurrogate, kAfterSurrogates};
  for (const auto& set : sets) {
    for (const Interval& interval : set) {
      bounds.push_back(interval.first);
      if (interval.last < kMaxCodePoint) bounds.push_back(interval.last + 1);
    }
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  const auto index_of = [&](uint32_t bound) {
    return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), bound) -
                               bounds.begin());
  };
  std::vector<uint32_t> cls(bounds.size(), 0);
  std::vector<uint32_t> size = {static_cast<uint32_t>(bounds.size())};
  std::vector<uint32_t> inside = {0};
  std::vector<uint32_t> renamed = {0};
  std::vector<uint32_t> touched;
  for (const auto& set : sets) {
    touched.clear();
    const auto each = [&](auto&& visit) {
      for (const Interval& interval : set) {
        const size_t begin = index_of(interval.first);
        for (size_t i = begin; i < bounds.size() && bounds[i] <= interval.last; ++i) visit(i);
      }
    };
    each([&](size_t i) {
      if (inside[cls[i]]++ == 0) touched.push_back(cls[i]);
    });
    for (uint32_t old : touched) {
      renamed[old] = old;
      if (inside[old] != size[old]) {
        renamed[old] = static_cast<uint32_t>(size.size());
        size[old] -= inside[old];
        size.push_back(inside[old]);
        inside.push_back(0);
        renamed.push_back(0);
      }
      inside[old] = 0;
    }
    each([&](size_t i) { cls[i] = renamed[cls[i]]; });
  }
  // Surrogates share the class of what precedes them; number the classes in order of appearance.
  const size_t surrogates = index_of(kFirstSurrogate);
  cls[surrogates] = cls[surrogates - 1];
  std::vector<uint32_t> number(size.size(), kInfinity);
  for (size_t i = 0; i < bounds.size(); ++i) {
    uint32_t& n = number[cls[i]];
    if (n == kInfinity) {
      n = static_cast<uint32_t>(loaded.representatives.size());
      loaded.representatives.push_back(bounds[i]);
    }
    cls[i] = n;
    if (i == 0 || cls[i - 1] != n) {
      loaded.interval_starts.push_back(bounds[i]);
      loaded.interval_classes.push_back(n);
    }
  }
  return bounds;
}

}  // namespace

std::unique_ptr<Terms> load(std::span<const int32_t> program, Loaded& loaded) {
  Reader reader(program);
  if (reader.next() != kVersion) throw Error("regex program: unknown version");
  const uint32_t num_sets = reader.count("sets");
  const uint32_t num_nodes = reader.count("nodes");
  if (num_nodes == 0) throw Error("regex program: no nodes");
  const std::vector<std::vector<Interval>> sets = read_sets(reader, num_sets);
  classify(sets, loaded);
  const size_t num_classes = loaded.representatives.size();
  auto terms = std::make_unique<Terms>(num_classes);

  const auto class_at = [&](uint32_t code_point) {
    const auto after = std::upper_bound(loaded.interval_starts.begin(),
                                        loaded.interval_starts.end(), code_point);
    return static_cast<size_t>(after - loaded.interval_starts.begin()) - 1;
  };
  std::vector<Id> set_ids;
  std::vector<uint64_t> bits(terms->set_words());
  for (const auto& set : sets) {
    std::fill(bits.begin(), bits.end(), 0);
    for (const Interval& interval : set) {
      const size_t last = class_at(interval.last);
      for (size_t i = class_at(interval.first); i <= last; ++i) {
        const uint32_t cls = loaded.interval_classes[i];
        bits[cls >> 6] |= uint64_t{1} << (cls & 63);
      }
    }
    set_ids.push_back(terms->intern_set(bits));
  }

  std::vector<Id> parts(num_nodes);
  std::vector<uint32_t> depth(num_nodes, 0);
  std::vector<std::pair<uint32_t, uint32_t>> behinds;  // set, at start
  for (uint32_t node = 0; node < num_nodes; ++node) {
    const int32_t op = reader.next();
    const auto child = [&] {
      const uint32_t id = reader.below(node, "child");
      depth[node] = std::max(depth[node], depth[id] + 1);
      return parts[id];
    };
    switch (op) {
      case kOpSet:
        parts[node] = terms->set_part(set_ids[reader.below(num_sets, "set")]);
        break;
      case kOpSeq:
      case kOpAlt: {
        const uint32_t n = reader.count("children");
        std::vector<Id> list;
        for (uint32_t i = 0; i < n; ++i) list.push_back(child());
        parts[node] =
            op == kOpSeq ? terms->sequence(std::move(list)) : terms->choice(std::move(list));
        break;
      }
      case kOpRepeat: {
        const Id body = child();
        const int32_t least = reader.next();
        const int32_t most = reader.next();
        if (least < 0 || most < -1 || (most >= 0 && most < least)) {
          throw Error("regex program: bad bounds of a repeat");
        }
        parts[node] = terms->repeat(body, static_cast<uint32_t>(least),
                                    most < 0 ? kInfinity : static_cast<uint32_t>(most));
        break;
      }
      case kOpLook: {
        const bool negative = reader.below(2, "flag") != 0;
        parts[node] = terms->look(child(), negative);
        break;
      }
      case kOpBehind: {
        const uint32_t set = reader.below(num_sets, "set");
        const std::pair<uint32_t, uint32_t> question{set_ids[set], reader.below(2, "flag")};
        auto found = std::find(behinds.begin(), behinds.end(), question);
        if (found == behinds.end()) {
          if (behinds.size() == kMaxBits) {
            throw UnsupportedFeature("more than 32 different conditions on the previous character");
          }
          found = behinds.insert(behinds.end(), question);
        }
        parts[node] = terms->behind(static_cast<uint32_t>(found - behinds.begin()));
        break;
      }
      case kOpEnd:
        parts[node] = terms->end();
        break;
      case kOpAutomaton: {
        std::vector<Terms::AutomatonRow> rows(reader.count("states"));
        for (Terms::AutomatonRow& row : rows) {
          row.final = reader.below(2, "flag") != 0;
          row.edges.resize(reader.count("edges"));
          for (auto& [set, target] : row.edges) {
            set = set_ids[reader.below(num_sets, "set")];
            target = reader.below(rows.size(), "state");
          }
        }
        parts[node] = terms->automaton(rows);
        break;
      }
      default:
        throw Error("regex program: unknown operator " + std::to_string(op));
    }
    if (depth[node] > kMaxNesting) {
      throw LimitError("the regular expression is nested too deeply", "nesting");
    }
  }
  if (!reader.done()) throw Error("regex program: something follows its end");

  std::vector<uint32_t> contexts(num_classes, 0);
  for (size_t bit = 0; bit < behinds.size(); ++bit) {
    const uint32_t mask = uint32_t{1} << bit;
    if (behinds[bit].second != 0) loaded.start_context |= mask;
    for (uint32_t cls = 0; cls < num_classes; ++cls) {
      if (terms->set_has(behinds[bit].first, cls)) contexts[cls] |= mask;
    }
  }
  terms->set_class_context(std::move(contexts));
  loaded.root = terms->atom(terms->chain(parts[num_nodes - 1], kNil));
  return terms;
}

}  // namespace constrain::regex
