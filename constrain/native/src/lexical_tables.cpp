#include "constrain/lexical_tables.hpp"

#include <algorithm>

#include "constrain/json_superset.hpp"
#include "constrain/poll.hpp"

namespace constrain {
namespace {

// From how many classes on, and for how many tokens, it pays to keep what is found behind a first
// character.
constexpr size_t kClassesToShare = 5;
constexpr size_t kTokensToShare = 256;
// From how many classes on a node made of so few runs is walked by characters.
constexpr size_t kClassesToWalk = 6;
constexpr uint32_t kRunsToWalk = 1;

// Whether enough tokens lie at the node and below it.
bool many_tokens(const ClassTrie& trie, uint32_t n) {
  size_t count = 0;
  for (CharTrie::Run run : trie.runs(trie.node(n))) {
    for (; !run.empty() && count < kTokensToShare; run = trie.chars().children(run)) {
      count += trie.chars().tokens(run).size() + trie.chars().odd(run).size();
    }
  }
  return count >= kTokensToShare;
}

bool is_in_number(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' || byte == '+' || byte == 'e' ||
         byte == 'E';
}

bool is_behind_number(uint8_t byte) {
  return byte == ',' || byte == ']' || byte == '}' || byte == ' ' || byte == '\n' ||
         byte == '\r' || byte == '\t';
}

// What follows a unit, as far as a context tells.
uint8_t superset_behind(uint32_t context) {
  return context == LexCursor::kAnyText ? JsonSuperset::kAnyText : JsonSuperset::kAfterString;
}

std::vector<WordBits> pack_row(const std::vector<uint32_t>& row) {
  std::vector<WordBits> words;
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (row[i]) words.push_back({i, row[i]});
  }
  words.shrink_to_fit();
  return words;
}

}  // namespace

void LexicalTable::add_to(uint32_t* row) const {
  for (size_t i = 0; i < dense_.size(); ++i) row[i] |= dense_[i];
  or_words(row, sparse_);
}

void LexicalTable::write_to(uint32_t* row, size_t words) const {
  if (!dense_.empty()) {
    copy_row(row, dense_.data(), words);
    return;
  }
  std::fill_n(row, words, 0u);
  for (const WordBits& w : sparse_) row[w.word] = w.bits;
}

void LexicalTable::set(const std::vector<uint32_t>& row, std::vector<Remainders> remainders) {
  remainders_ = std::move(remainders);
  const auto used = static_cast<size_t>(
      std::count_if(row.begin(), row.end(), [](uint32_t w) { return w != 0; }));
  // A word in a sparse row takes twice the space and more than twice the time.
  if (used > row.size() / 3) {
    dense_ = row;
  } else {
    sparse_ = pack_row(row);
  }
  bytes_ = sizeof(LexicalTable) + 64 + dense_.capacity() * sizeof(uint32_t) +
           sparse_.capacity() * sizeof(WordBits) + leaps_.capacity() * sizeof(Leap);
  for (const Remainders& r : remainders_) {
    bytes_ += r.bytes();
    if (r.trie.use_count() == 1) bytes_ += r.trie->bytes();
  }
}

LexicalTables::LexicalTables(const Trie& trie, LexicalStepper& stepper, uint32_t size,
                             size_t max_bytes)
    : trie_(trie),
      stepper_(stepper),
      words_(row_words(size)),
      max_bytes_(max_bytes),
      regions_(trie) {
  frames_.resize(trie.depth() + 1);
  cursors_.resize(trie.depth() + 1);
  row_.resize(words_);
}

const LexicalTable* LexicalTables::find(const LexCursor& cursor, uint32_t node) const {
  const auto it = tables_.find({cursor, node});
  return it == tables_.end() ? nullptr : it->second.get();
}

const LexicalTable& LexicalTables::get(const LexCursor& cursor, uint32_t node) {
  auto& slot = tables_[{cursor, node}];
  if (!slot) {
    slot = build(cursor, node);
    bytes_ += slot->bytes_;
  }
  slot->last_used_ = ++tick_;
  return *slot;
}

void LexicalTables::trim_classes() {
  if (class_bytes_ <= max_bytes_ / 2) return;
  std::vector<std::pair<uint64_t, uint64_t>> by_age;
  for (const auto& [key, trie] : class_tries_) by_age.push_back({trie->last_used, key});
  std::sort(by_age.begin(), by_age.end());
  for (const auto& [age, key] : by_age) {
    if (class_bytes_ <= max_bytes_ / 4) break;
    const auto it = class_tries_.find(key);
    class_bytes_ -= it->second->counted;
    trie_shares_.erase(it->second.get());
    class_tries_.erase(it);
  }
}

void LexicalTables::trim() {
  trim_classes();
  if (bytes_ <= max_bytes_) return;
  std::vector<std::pair<uint64_t, Key>> by_age;
  by_age.reserve(tables_.size());
  for (const auto& [key, table] : tables_) by_age.push_back({table->last_used_, key});
  std::sort(by_age.begin(), by_age.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [age, key] : by_age) {
    if (bytes_ <= max_bytes_ / 2) break;
    const auto it = tables_.find(key);
    bytes_ -= it->second->bytes_;
    tables_.erase(it);
  }
  ++generation_;
}

std::unique_ptr<LexicalTable> LexicalTables::build(const LexCursor& cursor, uint32_t root) {
  auto table = std::make_unique<LexicalTable>();
  std::fill(row_.begin(), row_.end(), 0u);
  ++built_;
  CharacterStepper* characters =
      use_classes_ && root == 0 ? stepper_.by_characters() : nullptr;
  uint32_t classes = CharacterStepper::kNoClasses;
  if (characters && characters->at_boundary(cursor.decoder)) {
    classes = characters->classes_of(cursor);
  }
  NumberPlace place;
  if (stepper_.number(cursor, place)) {
    walk_number(*table, place, cursor, root);
  } else if (const ByteRegion* region = stepper_.region(cursor)) {
    regions_.fill(*region, cursor.tracked, root, row_.data(), table->remainders_, table->leaps_);
  } else if (classes != CharacterStepper::kNoClasses) {
    ++built_by_class_;
    visit_classes(*table, *characters, classes, cursor);
  } else {
    walk_bytes(*table, cursor, root);
  }
  if (table->remainders_.size() == 1) {
    table->merged_ = true;
    table->remainders_[0].add_tokens(0, row_.data());
  }
  table->set(row_, std::move(table->remainders_));
  return table;
}

void LexicalTables::walk_number(LexicalTable& table, const NumberPlace& place,
                                const LexCursor& cursor, uint32_t root) {
  before_.clear();
  table.gap_behind_ =
      root == 0 && cursor.context == LexCursor::kJson && stepper_.number_ends(place);
  places_.resize(frames_.size());
  for (const uint32_t token : trie_.own_tokens(root)) set_bit(row_.data(), token);
  const TrieNode& top = trie_.node(root);
  size_t depth = 0;
  frames_[0] = {top.first_child, top.first_child + top.child_count};
  places_[0] = place;
  while (true) {
    Frame& frame = frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) break;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie_.node(n);
    poll_sometimes(steps_);
    if (is_behind_number(node.byte)) {
      if (depth == 0 && root == 0 && cursor.context == LexCursor::kJson) continue;
      if (stepper_.number_ends(places_[depth])) before_.push_back(n);
      continue;
    }
    if (!is_in_number(node.byte)) continue;
    if (place.digits_only && (node.byte == '.' || node.byte == 'e' || node.byte == 'E')) {
      std::string path;
      for (size_t d = 0; d < depth; ++d) {
        path.push_back(static_cast<char>(trie_.node(frames_[d].next - 1).byte));
      }
      table.detours_.push_back({std::move(path), n});
      continue;
    }
    NumberPlace next = places_[depth];
    if (!stepper_.step_number(next, node.byte)) continue;
    for (const uint32_t token : trie_.own_tokens(n)) set_bit(row_.data(), token);
    if (node.child_count == 0) continue;
    ++depth;
    frames_[depth] = {node.first_child, node.first_child + node.child_count};
    places_[depth] = next;
  }
  if (before_.empty()) return;
  Remainders remainders;
  remainders.trie = std::make_shared<const RemainderTrie>(
      unite_remainders(trie_, {}, before_, superset_behind(cursor.context)));
  table.remainders_.push_back(std::move(remainders));
}

void LexicalTables::walk_bytes(LexicalTable& table, const LexCursor& cursor, uint32_t root) {
  ends_.clear();
  auto add_own = [&](uint32_t n) {
    for (const uint32_t token : trie_.own_tokens(n)) set_bit(row_.data(), token);
  };
  if (trie_.node(root).has_tokens) add_own(root);
  size_t depth = 0;
  const TrieNode& top = trie_.node(root);
  frames_[0] = {top.first_child, top.first_child + top.child_count};
  cursors_[0] = cursor;
  while (true) {
    Frame& frame = frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) break;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie_.node(n);
    LexCursor next = cursors_[depth];
    uint32_t outcome = 0;
    poll_sometimes(steps_);
    switch (stepper_.step(next, node.byte, outcome)) {
      case LexStep::kDead:
        break;
      case LexStep::kEnd:
        ends_.push_back({outcome, n});
        break;
      case LexStep::kInside:
        if (node.has_tokens) add_own(n);
        if (node.child_count) {
          ++depth;
          frames_[depth] = {node.first_child, node.first_child + node.child_count};
          cursors_[depth] = next;
        }
        break;
    }
  }
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.outcome < b.outcome; });
  for (size_t i = 0; i < ends_.size();) {
    size_t j = i;
    while (j < ends_.size() && ends_[j].outcome == ends_[i].outcome) ++j;
    Remainders remainders;
    remainders.outcome = ends_[i].outcome;
    std::vector<uint32_t> nodes;
    for (size_t k = i; k < j; ++k) nodes.push_back(ends_[k].node);
    remainders.trie = std::make_shared<const RemainderTrie>(
        unite_remainders(trie_, nodes, {}, superset_behind(cursor.context)));
    table.remainders_.push_back(std::move(remainders));
    i = j;
  }
}

ClassTrie& LexicalTables::class_trie(CharacterStepper& stepper, uint32_t classes,
                                     uint32_t decoder) {
  std::unique_ptr<ClassTrie>& slot = class_tries_[uint64_t{classes} << 32 | decoder];
  if (!slot) {
    slot = std::make_unique<ClassTrie>(char_trie(stepper, decoder), stepper,
                                       stepper.classes(classes), words_);
  }
  slot->last_used = ++tick_;
  return *slot;
}

std::vector<uint32_t>& LexicalTables::Found::ended_with(uint32_t outcome) {
  for (size_t i = 0; i < used; ++i) {
    if (outcomes[i].outcome == outcome) return outcomes[i].row;
  }
  if (used == outcomes.size()) outcomes.push_back({0, {}});
  Outcome& fresh = outcomes[used++];
  fresh.outcome = outcome;
  fresh.row.assign(inside.size(), 0u);
  return fresh.row;
}

void LexicalTables::Found::clear(size_t words) {
  inside.assign(words, 0u);
  used = 0;
}

// All tokens at these character nodes and below.
void LexicalTables::add_all(const CharTrie& chars, std::span<const CharTrie::Run> runs,
                            uint32_t outcome, const Plain& all, Found& found) {
  uint32_t* ended = found.ended_with(outcome).data();
  level_.assign(runs.begin(), runs.end());
  while (!level_.empty()) {
    below_.clear();
    for (const CharTrie::Run& run : level_) {
      for (const uint32_t token : chars.tokens(run)) set_bit(found.inside.data(), token);
      for (const CharTrie::Odd& odd : chars.odd(run)) {
        set_bit(test_bit(all.inside.data(), odd.token) ? found.inside.data() : ended, odd.token);
      }
      const CharTrie::Run children = chars.children(run);
      if (!children.empty()) below_.push_back(children);
    }
    level_.swap(below_);
  }
}

// A character in progress is admitted if it can become one that is.
bool LexicalTables::admits(ClassTrie& trie, CharacterStepper& stepper, const LexCursor& at,
                           uint32_t class_set, uint64_t number) {
  const std::vector<uint32_t>& points = trie.classes().representatives;
  for (const uint32_t c : trie.class_set(class_set)) {
    if (points[c] == CharClasses::kNoCodePoint) continue;
    if (class_alive_[c] >> 1 != number) {
      class_next_[c] = at;
      class_alive_[c] = number * 2 + stepper.take(class_next_[c], points[c]);
    }
    if ((class_alive_[c] & 1) != 0) return true;
  }
  return false;
}

// One node; its children are left in visits_.
void LexicalTables::visit_node(ClassTrie& trie, CharacterStepper& stepper, const Plain& all,
                               const Visit& visit, Found& found) {
  const auto [n, at] = visit;
  poll_sometimes(visits_made_);
  const uint64_t number = visits_made_;
  if (stepper.anything(at)) {
    uint32_t outcome = 0;
    stepper.ends(at, outcome);
    add_all(trie.chars(), trie.runs(trie.node(n)), outcome, all, found);
    return;
  }
  const std::vector<uint32_t>& points = trie.classes().representatives;
  const ClassTrie::Node& node = trie.expand(n);
  trie.add(node.inside, found.inside.data());
  if (node.ended.count != 0) {
    uint32_t outcome = 0;
    if (stepper.ends(at, outcome)) trie.add(node.ended, found.ended_with(outcome).data());
  }
  for (const ClassTrie::Edge& edge : trie.edges(node)) {
    LexCursor& next = class_next_[edge.char_class] = at;
    const bool alive = stepper.take(next, points[edge.char_class]);
    class_alive_[edge.char_class] = number * 2 + alive;
    if (alive) visits_.push_back({edge.node, next});
  }
  for (const ClassTrie::Partial& partial : trie.partials(node)) {
    if (admits(trie, stepper, at, partial.class_set, number)) {
      trie.add(partial.tokens, found.inside.data());
    }
  }
}

void LexicalTables::walk_chars(ClassTrie& trie, CharacterStepper& stepper, const Plain& all,
                               const Visit& visit, Found& found) {
  const CharTrie& chars = trie.chars();
  const std::vector<uint32_t>& points = trie.classes().representatives;
  walks_.clear();
  for (const CharTrie::Run& run : trie.runs(trie.node(visit.node))) {
    walks_.push_back({run, visit.cursor});
  }
  while (!walks_.empty()) {
    const auto [run, at] = walks_.back();
    walks_.pop_back();
    poll_sometimes(visits_made_);
    const uint64_t number = visits_made_;
    uint32_t outcome = 0;
    if (stepper.anything(at)) {
      stepper.ends(at, outcome);
      add_all(chars, {&run, 1}, outcome, all, found);
      continue;
    }
    for (const uint32_t token : chars.tokens(run)) set_bit(found.inside.data(), token);
    for (const CharTrie::Odd& odd : chars.odd(run)) {
      if (odd.decoder == CharTrie::kEnded) {
        if (stepper.ends(at, outcome)) set_bit(found.ended_with(outcome).data(), odd.token);
      } else if (admits(trie, stepper, at, trie.partial_of(odd.decoder), number)) {
        set_bit(found.inside.data(), odd.token);
      }
    }
    const CharTrie::Run children = chars.children(run);
    uint32_t last_class = CharClasses::kNoCodePoint;
    for (uint32_t c = children.first; c != children.last; ++c) {
      const uint32_t char_class = trie.lookup()(chars.code_point(c));
      if (char_class == last_class) {     // the run that was just pushed, if it was
        if ((class_alive_[char_class] & 1) != 0) ++walks_.back().run.last;
        continue;
      }
      last_class = char_class;
      if (class_alive_[char_class] >> 1 != number) {
        class_next_[char_class] = at;
        class_alive_[char_class] =
            number * 2 + stepper.take(class_next_[char_class], points[char_class]);
      }
      if ((class_alive_[char_class] & 1) != 0) walks_.push_back({{c, c + 1}, class_next_[char_class]});
    }
  }
}

void LexicalTables::visit_below(ClassTrie& trie, CharacterStepper& stepper, const Plain& all,
                                const Visit& top, Found& found) {
  visits_.assign(1, top);
  while (!visits_.empty()) {
    const Visit visit = visits_.back();
    visits_.pop_back();
    // Where many classes have hardly merged anything, a node is not worth its memory.
    const ClassTrie::Node& node = trie.node(visit.node);
    if (!node.expanded && node.runs <= kRunsToWalk &&
        trie.classes().representatives.size() >= kClassesToWalk) {
      walk_chars(trie, stepper, all, visit, found);
    } else {
      visit_node(trie, stepper, all, visit, found);
    }
  }
}

void LexicalTables::visit_classes(LexicalTable& table, CharacterStepper& stepper, uint32_t classes,
                                  const LexCursor& cursor) {
  const Plain& all = plain(stepper, cursor.decoder);
  const auto& rest = plain_remainders(cursor.decoder, cursor.context);
  if (stepper.anything(cursor)) {
    row_ = all.inside;
    if (!rest->words.empty()) {
      table.remainders_.emplace_back();
      stepper.ends(cursor, table.remainders_[0].outcome);
      table.remainders_[0].trie = rest;
    }
    return;
  }
  ClassTrie& trie = class_trie(stepper, classes, cursor.decoder);
  const size_t class_count = trie.classes().representatives.size();
  class_alive_.assign(class_count, 0);
  class_next_.resize(class_count);
  found_.clear(words_);
  visits_.clear();
  visit_node(trie, stepper, all, {0, cursor}, found_);
  const std::vector<Visit> children(visits_.begin(), visits_.end());
  for (const Visit& child : children) {
    // With many classes much is visited, but from most positions in a unit a first character leads
    // to one of a few: what is found behind it is kept.
    if (class_count < kClassesToShare || !many_tokens(trie, child.node)) {
      visit_below(trie, stepper, all, child, found_);
      continue;
    }
    Shared& shared = trie_shares_[&trie][{child.cursor, child.node}];
    if (!shared.known) {
      part_.clear(words_);
      visit_below(trie, stepper, all, child, part_);
      shared.known = true;
      shared.inside = pack_row(part_.inside);
      for (size_t i = 0; i < part_.used; ++i) {
        const Outcome& o = part_.outcomes[i];
        shared.ended.push_back({o.outcome, pack_row(o.row)});
      }
      trie.extra_bytes += shared.bytes();
    }
    or_words(found_.inside.data(), shared.inside);
    for (const auto& [outcome, words] : shared.ended) {
      or_words(found_.ended_with(outcome).data(), words);
    }
  }
  const size_t bytes = trie.bytes();
  class_bytes_ += bytes - trie.counted;
  trie.counted = bytes;

  row_ = found_.inside;
  std::sort(found_.outcomes.begin(), found_.outcomes.begin() + static_cast<ptrdiff_t>(found_.used),
            [](const Outcome& a, const Outcome& b) { return a.outcome < b.outcome; });
  for (size_t i = 0; i < found_.used; ++i) {
    const Outcome& o = found_.outcomes[i];
    Remainders remainders = choose(o.outcome, rest, o.row.data());
    if (remainders.any_below(0)) table.remainders_.push_back(std::move(remainders));
  }
}

const CharTrie& LexicalTables::char_trie(CharacterStepper& stepper, uint32_t decoder) {
  return *plain(stepper, decoder).chars;
}

const LexicalTables::Plain& LexicalTables::plain(CharacterStepper& stepper, uint32_t decoder) {
  Plain& slot = plain_[decoder];
  if (slot.chars) return slot;
  slot.chars = std::make_unique<const CharTrie>(trie_, stepper, decoder);
  const CharTrie::Run all{0, slot.chars->node_count()};
  slot.inside.resize(words_);
  for (const uint32_t token : slot.chars->tokens(all)) set_bit(slot.inside.data(), token);
  for (const CharTrie::Odd& odd : slot.chars->odd(all)) {
    if (odd.decoder != CharTrie::kEnded) set_bit(slot.inside.data(), odd.token);
  }
  shared_bytes_ += slot.inside.capacity() * sizeof(uint32_t) + slot.chars->bytes();
  return slot;
}

const std::shared_ptr<const RemainderTrie>& LexicalTables::plain_remainders(uint32_t decoder,
                                                                            uint32_t context) {
  Plain& slot = plain_[decoder];
  auto& remainders = slot.remainders[context];
  if (remainders) return remainders;
  remainders = std::make_shared<const RemainderTrie>(
      unite_remainders(trie_, slot.chars->ends(), {}, superset_behind(context)));
  shared_bytes_ += remainders->bytes();
  return remainders;
}

Remainders LexicalTables::choose(uint32_t outcome, std::shared_ptr<const RemainderTrie> trie,
                                 const uint32_t* row) {
  Remainders result;
  result.outcome = outcome;
  result.trie = std::move(trie);
  const RemainderTrie& all = *result.trie;
  bool whole = true;
  for (const WordBits& w : all.words) whole = whole && (w.bits & ~row[w.word]) == 0;
  if (whole && !all.words.empty()) return result;
  result.bits.reserve(all.words.size());
  for (const WordBits& w : all.words) result.bits.push_back(w.bits & row[w.word]);
  // Children come behind their parents.
  result.below.assign((all.nodes.size() + 63) / 64, 0);
  for (auto n = static_cast<uint32_t>(all.nodes.size()); n-- > 0;) {
    const TrieNode& node = all.nodes[n];
    bool any = false;
    for (uint32_t i = all.word_begin[n]; i < all.word_begin[n + 1]; ++i) any |= result.bits[i] != 0;
    for (uint32_t c = 0; c < node.child_count && !any; ++c) {
      any = result.any_below(node.first_child + c);
    }
    if (any) result.below[n >> 6] |= uint64_t{1} << (n & 63);
  }
  return result;
}

}  // namespace constrain
