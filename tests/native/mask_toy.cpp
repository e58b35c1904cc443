// Masks of a toy machine against brute force: every token stepped byte by byte.
//
// The machine reads nested arrays, objects and strings and has, in small, everything that mask
// filling must get right: declared keys that behave differently from others (exceptional configs),
// a language that strings must belong to (goals), and an outcome that decides what may follow.
//
// Afterwards several threads fill batches of shared matchers and follow sequences of their own.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "constrain/batch.hpp"
#include "constrain/errors.hpp"
#include "constrain/session.hpp"

namespace {

using namespace constrain;

// goal 1: no 'x' in the string.  tracked 1, 2: the string has an even, odd number of bytes so far.
// decoder 1: behind a backslash.
class ToyStepper final : public LexicalStepper {
 public:
  LexStep step(LexCursor& c, uint8_t b, uint32_t& outcome) override {
    if (c.decoder == 1) {
      if (b != 'n' && b != '"' && b != '\\') return LexStep::kDead;
      c.decoder = 0;
    } else if (b == '"') {
      outcome = c.tracked == 1 ? 7 : 3;
      return LexStep::kEnd;
    } else if (b < 0x20 || b == kTokenMark || (c.goal == 1 && b == 'x')) {
      return LexStep::kDead;
    } else if (b == '\\') {
      c.decoder = 1;
    }
    if (c.tracked) c.tracked = 3 - c.tracked;
    return LexStep::kInside;
  }
};

enum Mode : uint32_t { kValue, kString, kKey, kColon, kAfter, kFirstItem, kFirstKey, kNextKey, kEnd };

// Keys "ab" (an array follows) and "abc" (a string follows) are declared; after any other key any
// value.  In arrays only strings without x, and behind one of even length only the end.
class ToyMachine final : public Machine {
 public:
  explicit ToyMachine(LexicalStepper& stepper) : stepper_(stepper) {}
  // w: mode, stack bits (1 array), depth, key progress + 1 (0: diverged), wanted value, cursor * 3,
  // parity of the last string
  Config start() override { return {}; }
  bool step(Config& c, uint8_t b) override {
    auto& w = c.w;
    switch (w[0]) {
      case kFirstItem:
        if (b == ']') return close(c);
        [[fallthrough]];
      case kValue:
        if (b == ' ') return true;
        if (b == '"' && w[4] != 1) {
          const bool item = w[2] > 0 && (w[1] & 1u);
          w[0] = kString;
          w[5] = item;
          w[6] = item ? 1 : 0;
          w[7] = 0;
          return true;
        }
        if (b == '[' && w[4] != 2) return open(c, 1, kFirstItem);
        if (b == '{' && w[4] == 0) return open(c, 0, kFirstKey);
        return false;
      case kString:
      case kKey: {
        LexCursor cursor{w[5], w[6], w[7]};
        uint32_t outcome = 0;
        const LexStep r = stepper_.step(cursor, b, outcome);
        if (r == LexStep::kDead) return false;
        if (r == LexStep::kEnd) {
          const uint32_t progress = w[0] == kKey ? w[3] : 0;
          if (!finish(c, outcome)) return false;
          w[4] = progress == 3 ? 1 : progress == 4 ? 2 : w[4];
          return true;
        }
        w[5] = cursor.goal, w[6] = cursor.tracked, w[7] = cursor.decoder;
        if (w[0] == kKey && w[3]) w[3] = w[3] <= 3 && b == "abc"[w[3] - 1] ? w[3] + 1 : 0;
        return true;
      }
      case kFirstKey:
        if (b == '}') return close(c);
        [[fallthrough]];
      case kNextKey:
        if (b == ' ') return true;
        if (b != '"') return false;
        w[0] = kKey;
        w[3] = 1;
        w[5] = w[6] = w[7] = 0;
        return true;
      case kColon:
        if (b == ' ') return true;
        if (b != ':') return false;
        w[0] = kValue;
        return true;
      case kAfter:
        if (b == ' ') return w[2] > 0;
        if (w[2] == 0) return false;
        if (b == ((w[1] & 1u) ? ']' : '}')) return close(c);
        if (b != ',' || w[8] == 7) return false;
        w[0] = (w[1] & 1u) ? kValue : kNextKey;
        return true;
      default: return false;
    }
  }
  bool accepts(const Config& c) override { return c.w[0] == kAfter && c.w[2] == 0; }
  LexicalView lexical(const Config& c) override {
    LexicalView view;
    view.present = c.w[0] == kString || c.w[0] == kKey;
    view.exceptional = c.w[0] == kKey && c.w[3] != 0;
    view.cursor = {c.w[5], c.w[6], c.w[7]};
    return view;
  }
  bool leave(Config& c, uint32_t outcome) override { return finish(c, outcome); }
  size_t bytes() const override { return 0; }
  std::string describe(const Config&) override { return ""; }
  bool complete(const Config&, std::string&, size_t) override { return false; }

 private:
  bool finish(Config& c, uint32_t outcome) {
    const bool key = c.w[0] == kKey;
    for (size_t i = 3; i < 8; ++i) c.w[i] = 0;
    c.w[8] = outcome;
    c.w[0] = key ? kColon : kAfter;
    return true;
  }
  bool open(Config& c, uint32_t bit, uint32_t mode) {
    if (c.w[2] == 20) return false;
    c.w[1] = c.w[1] << 1 | bit;
    ++c.w[2];
    c.w[0] = mode;
    c.w[4] = 0;
    return true;
  }
  bool close(Config& c) {
    c.w[1] >>= 1;
    --c.w[2];
    c.w[0] = kAfter;
    c.w[4] = 0;
    c.w[8] = 0;
    return true;
  }
  LexicalStepper& stepper_;
};

// What one of several threads does; false: a row is wrong.
bool share(const std::shared_ptr<Constraint>& constraint, std::vector<std::unique_ptr<Matcher>>& all,
           const std::vector<uint32_t>& expected, unsigned seed) {
  std::mt19937 rng(seed);
  const size_t words = expected.size();
  std::vector<uint32_t> rows(all.size() * words), row(words);
  for (int round = 0; round < 12; ++round) {
    std::vector<BatchJob> jobs(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      jobs[i].matcher = all[i].get();
      jobs[i].row = rows.data() + i * words;
    }
    fill_batch(jobs, 1 + rng() % 4);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == expected[i % words]) continue;
      return std::printf("row %zu of a batch is wrong\n", i / words), false;
    }
    Matcher own(constraint);
    for (int step = 0; step < 6; ++step) {
      const MatcherLock lock(own);
      own.fill(row.data());
      for (int tries = 0; tries < 50; ++tries) {
        const uint32_t token = rng() % 5010;
        const bool allowed = test_bit(row.data(), token);
        if (own.advance(token) != allowed) return std::printf("token %u is wrong\n", token), false;
        if (allowed) break;
      }
      if (step == 3) own.rollback(own.tokens().size() / 2);
      own.fill(row.data());
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  std::mt19937 rng(seed);
  const auto pick = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  std::string blob;
  std::vector<uint32_t> offsets{0};
  const std::string_view alphabet = "\"\"\"\"abcx[]{},:\\ nab";
  for (int i = 0; i < 5000; ++i) {
    if (i < 256) {
      blob.push_back(static_cast<char>(i));
    } else if (i % 50 != 0) {   // every fiftieth has no text
      for (size_t n = 1 + pick(7); n > 0; --n) blob.push_back(alphabet[pick(alphabet.size())]);
    }
    offsets.push_back(static_cast<uint32_t>(blob.size()));
  }
  PoolFactory pools{[] { return std::make_unique<ToyStepper>(); },
                    [](const LexicalStepper&) { return size_t{0}; }};
  // The memory bound of the tables is so small that tables come and go.
  auto vocabulary = std::make_shared<Vocabulary>(blob, offsets, std::vector<uint32_t>{4999, 5003},
                                                 5010, pools, size_t{40000});
  auto constraint = std::make_shared<Constraint>(
      vocabulary, [](LexicalStepper& s) { return std::make_unique<ToyMachine>(s); },
      size_t{40000});
  ToyStepper stepper;
  ToyMachine machine(stepper);
  size_t compared = 0, finished = 0;
  std::unique_lock lock(constraint->first().mutex());
  std::vector<uint32_t> row(vocabulary->words() + 1, 0xFFFFFFFFu);
  for (int walk = 0; walk < 60; ++walk) {
    Matcher matcher(constraint);
    Config config = machine.start();
    for (int i = 0; i < 40; ++i) {
      // Twice: the second and third time from the cache.
      for (int again = 0; again < 3; ++again) {
        std::fill(row.begin(), row.end() - 1, 0x55555555u);
        matcher.fill(row.data());
        if (row.back() != 0xFFFFFFFFu) return std::puts("wrote behind the row"), 1;
        for (uint32_t t = 0; t < vocabulary->words() * 32; ++t) {
          bool want = false;
          if (vocabulary->is_eos(t)) {
            want = machine.accepts(config);
          } else if (!vocabulary->text(t).empty()) {
            Config c = config;
            want = true;
            for (const char ch : vocabulary->text(t)) {
              want = want && machine.step(c, static_cast<uint8_t>(ch));
            }
          }
          if (want != test_bit(row.data(), t)) {
            std::printf("seed %u walk %d step %d visit %d token %u '%.*s': want %d\n", seed, walk, i,
                        again, t, static_cast<int>(vocabulary->text(t).size()),
                        vocabulary->text(t).data(), want);
            return 1;
          }
        }
        ++compared;
      }
      std::vector<uint32_t> allowed;
      for (uint32_t t = 0; t < 5010; ++t) {
        if (test_bit(row.data(), t)) allowed.push_back(t);
      }
      if (allowed.empty()) return std::puts("dead end"), 1;
      const uint32_t token = allowed[pick(allowed.size())];
      if (!matcher.advance(token)) return std::puts("allowed token refused"), 1;
      if (matcher.is_finished()) {
        ++finished;
        break;
      }
      for (const char ch : vocabulary->text(token)) machine.step(config, static_cast<uint8_t>(ch));
    }
  }
  std::vector<uint32_t> expected(vocabulary->words());
  Matcher(constraint).fill(expected.data());
  lock.unlock();
  std::vector<std::unique_ptr<Matcher>> all;
  for (int i = 0; i < 40; ++i) all.push_back(std::make_unique<Matcher>(constraint));
  std::atomic<bool> right{true};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      if (!share(constraint, all, expected, seed * 10 + i)) right = false;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!right) return 1;
  std::printf("ok: %zu masks compared, %zu texts finished, generation %u, table generation %u\n",
              compared, finished, constraint->first().generation(),
              vocabulary->shard().tables().generation());
  return 0;
}
