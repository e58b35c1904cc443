// Lexical tables made from classes of characters against those made by walking bytes.
//
// Reads commands from standard input, words separated by blanks:
//   vocab N              followed by N tokens in hexadecimal, '-' for none
//   cursor RAW LEAST MOST GOALS TRACKED
//                        followed by GOALS + TRACKED regexes, each: NEGATED N and N integers.  The
//                        goal is the intersection of the first ones and of the length bounds
//                        (MOST -1: none); the others are tracked.
//   walk SEED STEPS      compares the tables along a random walk by characters
//   time SEED STEPS      the same without comparing; prints what each table cost
// and answers each walk with one line: "ok TABLES BY_CLASS TOKENS" or what differs.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "constrain/errors.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/lexical_tables.hpp"

namespace {

using namespace constrain;
using Row = std::vector<uint32_t>;

// What a table says, in one form: inside tokens, and per outcome the tokens of each remainder.
struct Meaning {
  Row inside;
  std::map<uint32_t, std::map<std::string, std::set<uint32_t>>> ended;
  bool operator==(const Meaning&) const = default;
};

Meaning meaning(const LexicalTable& table, size_t words) {
  Meaning m;
  m.inside.resize(words);
  table.write_to(m.inside.data(), words);
  for (const Remainders& r : table.remainders()) {
    if (table.merged()) r.clear_tokens(0, m.inside.data());
    std::vector<std::pair<uint32_t, std::string>> work{{0, ""}};
    while (!work.empty()) {
      const auto [n, text] = work.back();
      work.pop_back();
      bool any = false;
      r.for_each_token(n, [&](uint32_t token) {
        m.ended[r.outcome][text].insert(token);
        any = true;
      });
      if (any && !r.any_below(n)) throw Error("tokens below a node that says there are none");
      const TrieNode& node = r.trie->nodes[n];
      if (any != (node.has_tokens != 0) && r.bits.empty()) throw Error("has_tokens is wrong");
      for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
        work.push_back({c, text + static_cast<char>(r.trie->nodes[c].byte)});
      }
    }
  }
  return m;
}

class Driver {
 public:
  void vocab() {
    size_t count = 0;
    std::cin >> count;
    tables_.reset();
    bytewise_.reset();
    texts_.assign(count, "");
    std::string word;
    for (std::string& text : texts_) {
      std::cin >> word;
      if (word == "-") continue;
      for (size_t i = 0; i + 1 < word.size(); i += 2) {
        text.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
      }
    }
    views_.assign(texts_.begin(), texts_.end());
    trie_ = std::make_unique<Trie>(views_);
    const auto size = static_cast<uint32_t>(count);
    tables_ = std::make_unique<LexicalTables>(*trie_, pool_, size, size_t{1} << 22);
    bytewise_ = std::make_unique<LexicalTables>(*trie_, pool_, size, size_t{1} << 22);
    bytewise_->use_classes(false);
  }

  void cursor() {
    int raw = 0;
    uint32_t least = 0;
    int64_t most = 0;
    size_t goals = 0, tracked = 0;
    std::cin >> raw >> least >> most >> goals >> tracked;
    std::vector<LexId> parts{pool_.min_length(least)}, lists;
    if (most >= 0) parts.push_back(pool_.max_length(static_cast<uint32_t>(most)));
    for (size_t i = 0; i < goals + tracked; ++i) {
      int negated = 0;
      size_t n = 0;
      std::cin >> negated >> n;
      std::vector<int32_t> program(n);
      for (int32_t& word : program) std::cin >> word;
      LexId id = pool_.regex(program);
      if (negated) id = pool_.negate(id);
      (i < goals ? parts : lists).push_back(id);
    }
    start_.goal = pool_.all_of(parts);
    if (!pool_.live(start_.goal)) start_.goal = LexicalPool::kNothing;
    start_.tracked = lists.empty() ? 0 : pool_.list(lists);
    start_.decoder = raw ? LexicalPool::kRaw : LexicalPool::kJson;
  }

  void walk(bool compare) {
    unsigned seed = 0;
    size_t steps = 0;
    std::cin >> seed >> steps;
    std::mt19937 rng(seed);
    LexCursor at = start_;
    size_t made = 0, tokens = 0;
    const uint64_t before = tables_->built_by_class();
    const size_t words = row_words(static_cast<uint32_t>(texts_.size()));
    for (size_t i = 0; i <= steps && at.goal != LexicalPool::kNothing; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const uint64_t visits = tables_->visits();
      const LexicalTable& table = tables_->get(at, 0);
      const auto end = std::chrono::steady_clock::now();
      ++made;
      if (compare) {
        const Meaning mine = meaning(table, words);
        const Meaning other = meaning(bytewise_->get(at, 0), words);
        for (const uint32_t w : mine.inside) tokens += static_cast<size_t>(std::popcount(w));
        for (const auto& [outcome, texts] : mine.ended) {
          for (const auto& [text, ids] : texts) tokens += ids.size();
        }
        if (!(mine == other)) {
          std::printf("differs seed %u step %zu goal %u: inside equal %d, ended equal %d\n", seed, i,
                      at.goal, mine.inside == other.inside, mine.ended == other.ended);
          return;
        }
      } else {
        std::printf("  %8.1f us %6llu visits %8zu bytes of tables\n",
                    std::chrono::duration<double, std::micro>(end - start).count(),
                    static_cast<unsigned long long>(tables_->visits() - visits),
                    tables_->bytes());
      }
      tables_->trim();
      std::vector<LexCursor> next;
      for (const uint32_t c : pool_.representatives(at.goal)) {
        LexCursor to = at;
        if (pool_.take(to, c)) next.push_back(to);
      }
      if (next.empty()) break;
      at = next[rng() % next.size()];
    }
    std::printf("ok %zu %llu %zu\n", made,
                static_cast<unsigned long long>(tables_->built_by_class() - before), tokens);
  }

 private:
  LexicalPool pool_;
  std::vector<std::string> texts_;
  std::vector<std::string_view> views_;
  std::unique_ptr<Trie> trie_;
  std::unique_ptr<LexicalTables> tables_, bytewise_;
  LexCursor start_;
};

}  // namespace

int main() {
  Driver driver;
  std::string command;
  while (std::cin >> command) {
    if (command == "vocab") driver.vocab();
    else if (command == "cursor") driver.cursor();
    else if (command == "walk") driver.walk(true);
    else if (command == "time") driver.walk(false);
    else return std::puts("unknown command"), 1;
    std::fflush(stdout);
  }
  return 0;
}
