// Completions and descriptions of a grammar machine's configurations.
#include <algorithm>
#include <bitset>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "constrain/grammar_machine.hpp"
#include "constrain/trie.hpp"

namespace constrain {
namespace {

constexpr uint32_t kNone = GrammarTables::kNone;
constexpr uint32_t kFar = GrammarTables::kFar;
constexpr size_t kWaysOut = 8;                // items that are followed out
constexpr size_t kSearchBudget = 20'000;      // configurations

uint32_t sum(uint32_t a, uint32_t b) { return std::min(kFar, a + b); }

std::string show(unsigned byte) {
  static const char* const digits = "0123456789ABCDEF";
  switch (byte) {
    case '\n': return "a line feed";
    case '\t': return "a tab";
    case '\r': return "a carriage return";
    case ' ': return "a space";
    default: break;
  }
  if (byte > 32 && byte < 127) return std::string("'") + char(byte) + "'";
  if (byte >= 128) return "a character beyond ASCII";
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

}  // namespace

// Names the token if there is one only.
std::string GrammarMachine::describe_token(Config config) {
  uint32_t id = 0;
  for (int rest = 0; rest < 3; ++rest) {
    int only = -1;
    Config behind;
    for (int byte = 0; byte < 256; ++byte) {
      Config next = config;
      if (!step(next, uint8_t(byte))) continue;
      if (only >= 0) return "a special token";
      only = byte;
      behind = next;
    }
    id = id << 8 | uint32_t(only);
    config = behind;
  }
  return "the special token " + std::to_string(id);
}

std::string GrammarMachine::describe(const Config& config) {
  if (is_place(config)) {
    const std::string text = foreign_.machine(number_of(config)).describe(config);
    return accepts(config) ? text + " or the end" : text;
  }
  std::bitset<256> next;
  std::string token;
  for (unsigned byte = 0; byte < 256; ++byte) {
    Config trial = config;
    next[byte] = step(trial, uint8_t(byte));
    if (byte == kTokenMark && next[byte]) {
      token = describe_token(trial);
      next[byte] = false;
    }
  }
  std::vector<std::string> parts;
  bool beyond = false;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!next[byte]) continue;
    if (byte >= 128) {
      beyond = true;
      continue;
    }
    unsigned last = byte;
    while (last + 1 < 127 && byte > 32 && next[last + 1]) ++last;
    if (last >= byte + 2) {
      parts.push_back(show(byte) + " to " + show(last));
    } else {
      last = byte;
      parts.push_back(show(byte));
    }
    byte = last;
  }
  if (beyond) parts.push_back(next.count() > 128 && next['a'] ? "any other character" : show(128));
  if (!token.empty()) parts.push_back(token);
  if (accepts(config)) parts.push_back("the end");
  if (parts.empty()) return "nothing";
  std::string text;
  constexpr size_t kMost = 12;
  for (size_t i = 0; i < parts.size() && i < kMost; ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " or " : ", ";
    text += parts[i];
  }
  if (parts.size() > kMost) text += ", ...";
  return text;
}

// The least number of bytes that empty a stack.  Memoised by id in order of depth: what is below is
// older, except where sets were united later, so the walk keeps its own list of what is open.
uint32_t GrammarMachine::stack_distance(StackId wanted, Distances& known) {
  std::vector<StackId> open{wanted};
  while (!open.empty()) {
    const StackId id = open.back();
    if (known.contains(id)) {
      open.pop_back();
      continue;
    }
    uint32_t best = kFar;
    bool ready = true;
    for (const auto& entry : stacks_.entries(id)) {
      if (entry.back == GrammarStacks::kBottom) {
        best = 0;
        continue;
      }
      const auto below = known.find(entry.below);
      if (below == known.end()) {
        open.push_back(entry.below);
        ready = false;
      } else {
        best = std::min(best, sum(tables_.distance(entry.back), below->second));
      }
    }
    if (!ready) continue;
    known.emplace(id, best);
    open.pop_back();
  }
  return known.at(wanted);
}

void GrammarMachine::measure() {
  if (tables_.measured()) return;
  std::vector<uint32_t> lengths;
  for (uint32_t number = 0; number < foreign_.count(); ++number) {
    const std::string* text = foreign_.text(number);
    lengths.push_back(text ? uint32_t(text->size()) : kFar);
  }
  tables_.measure(lengths);
}

// The items by the length of a shortest text behind them, obligations aside, with the text to the end
// of the embedded one that they are in.
std::vector<GrammarMachine::WayOut> GrammarMachine::ways_out(const Config& config, size_t limit,
                                                             Distances& known) {
  measure();
  std::vector<Item> all;
  if (is_place(config)) {
    all.push_back({kPlaceKey | foreign_.place(config, number_of(config), 0), config.w[kStacks]});
  } else {
    const std::span<const Item> found = items(config);
    all.assign(found.begin(), found.end());
  }
  std::vector<WayOut> ways;
  for (const Item& item : all) {
    WayOut way{item, kFar, {}};
    if (!place_key(item.key)) {
      way.length = tables_.distance(state_of(item.key));
    } else {
      const Config place = place_at(item.key);
      Machine& machine = foreign_.use(place.w[GrammarForeign::kNumber]);
      if (machine.complete(place, way.begun, limit)) way.length = uint32_t(way.begun.size());
    }
    way.length = sum(way.length, stack_distance(item.stacks, known));
    if (way.length < kFar && way.length <= limit) ways.push_back(std::move(way));
  }
  std::ranges::stable_sort(ways, {}, &WayOut::length);
  return ways;
}

// Follows an item out, without looking at obligations; what is found is tried at the end.
bool GrammarMachine::walk_out(const Config& config, const WayOut& way, Distances& known,
                              std::string& out, size_t limit) {
  const Item item = way.item;
  std::string text = way.begun;
  bool ended = place_key(item.key);            // at the end of a net or of an embedded text
  uint32_t state = ended ? 0 : state_of(item.key);
  StackId below = item.stacks;                 // below all frames of `frames`
  std::vector<uint32_t> frames;                // return states of the calls made here
  while (true) {
    const uint32_t left = tables_.distance(state);
    if (ended || (left == 0 && tables_.is_final(state))) {
      ended = false;
      if (!frames.empty()) {
        state = frames.back();
        frames.pop_back();
        continue;
      }
      uint32_t cheapest = kFar, back = kNone;
      StackId under = 0;
      for (const auto& entry : stacks_.entries(below)) {
        if (entry.back == GrammarStacks::kBottom) {
          cheapest = 0;
          back = kNone;
          break;
        }
        const uint32_t cost = sum(tables_.distance(entry.back), stack_distance(entry.below, known));
        if (cost < cheapest) {
          cheapest = cost;
          back = entry.back;
          under = entry.below;
        }
      }
      if (cheapest >= kFar) return false;
      if (back == kNone) break;
      state = back;
      below = under;
      continue;
    }
    bool moved = false;
    for (const auto& range : tables_.ranges(state)) {
      if (sum(tables_.distance(range.target), 1) != left) continue;
      text += char(range.first);
      state = range.target;
      moved = true;
      break;
    }
    if (!moved) {
      for (const auto& call : tables_.calls(state)) {
        if (sum(tables_.distance(call.callee), tables_.distance(call.back)) != left) continue;
        frames.push_back(call.back);
        state = call.callee;
        moved = true;
        break;
      }
    }
    if (!moved) {
      for (const auto& foreign : tables_.foreigns(state)) {
        const std::string* own = foreign_.text(foreign.number);
        if (!own || sum(uint32_t(own->size()), tables_.distance(foreign.back)) != left) continue;
        text += *own;
        state = foreign.back;
        moved = true;
        break;
      }
    }
    if (!moved) {
      for (const auto& mark : tables_.marks(state)) {
        if (tables_.distance(mark.target) != left) continue;
        state = mark.target;
        moved = true;
        break;
      }
    }
    if (!moved || text.size() > limit) return false;
  }
  Config check = config;
  for (const char c : text) {
    if (!step(check, uint8_t(c))) return false;
  }
  if (!accepts(check)) return false;
  out += text;
  return true;
}

// The least number of bytes to a way out, obligations aside: never more than there really are.  What
// an embedded text still needs is not asked for, since that can be a search of its own.
uint32_t GrammarMachine::way_out(const Config& config, Distances& known) {
  if (is_place(config)) return stack_distance(config.w[kStacks], known);
  uint32_t best = kFar;
  for (const Item& item : items(config)) {
    const uint32_t own = place_key(item.key) ? 0 : tables_.distance(state_of(item.key));
    best = std::min(best, sum(own, stack_distance(item.stacks, known)));
  }
  return best;
}

// Best first over configurations: for what obligations stand in the way of.  The way out that there
// would be without them leads the search; where they bar it, its neighbours are tried.
bool GrammarMachine::search_out(const Config& config, std::string& out, size_t limit) {
  struct Node {
    Config config;
    uint32_t parent;
    uint32_t depth;
    uint8_t byte;
  };
  struct Hash {
    size_t operator()(const Config& c) const {
      size_t h = 0;
      for (const uint32_t w : c.w) h = h * 0x9E3779B97F4A7C15ull + w + (h >> 31);
      return h;
    }
  };
  struct Open {
    uint64_t cost;
    uint32_t node;
    bool operator<(const Open& o) const { return std::tie(cost, node) > std::tie(o.cost, o.node); }
  };
  measure();
  Distances known{{GrammarStacks::kOnlyBottom, 0}};
  std::vector<Node> nodes{{config, 0, 0, 0}};
  std::unordered_set<Config, Hash> seen{config};
  std::priority_queue<Open> open;
  open.push({0, 0});
  while (!open.empty()) {
    const uint32_t i = open.top().node;
    open.pop();
    if (accepts(nodes[i].config)) {
      std::string text;
      for (uint32_t at = i; at != 0; at = nodes[at].parent) text += char(nodes[at].byte);
      std::ranges::reverse(text);
      out += text;
      return true;
    }
    if (nodes.size() > kSearchBudget) return false;
    if (nodes[i].depth >= limit) continue;
    searched_ += 16;   // in units of the steps that JSON counts
    for (unsigned byte = 0; byte < 256; ++byte) {
      Config next = nodes[i].config;
      if (!step(next, uint8_t(byte)) || !seen.insert(next).second) continue;
      const uint32_t left = way_out(next, known);
      if (left >= kFar) continue;
      const uint32_t depth = nodes[i].depth + 1;
      open.push({2 * uint64_t{left} + depth, uint32_t(nodes.size())});
      nodes.push_back({next, i, depth, uint8_t(byte)});
    }
  }
  return false;
}

bool GrammarMachine::complete(const Config& config, std::string& out, size_t limit) {
  if (accepts(config)) return true;
  Distances known{{GrammarStacks::kOnlyBottom, 0}};
  size_t tried = 0;
  for (const WayOut& way : ways_out(config, limit, known)) {
    if (++tried > kWaysOut) break;
    if (walk_out(config, way, known, out, limit)) return true;
  }
  return search_out(config, out, limit);
}

}  // namespace constrain
