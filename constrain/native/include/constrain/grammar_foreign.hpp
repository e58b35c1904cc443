// The programs that a grammar embeds, and the positions inside of their texts.
//
// Programs with equal options share one machine with several roots, and equal roots are one.  A
// *place* is a config of an embedded machine (its words from kEmbeddedWords on: the foreign number and
// the obligation that the text is under), interned: equal places have equal ids.
//
// Between begin_trial and end_trial places are forgotten at the end, and a machine is told of the
// trial when it is first used in it: most of many are not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "constrain/json_machine.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/machine.hpp"
#include "constrain/program.hpp"
#include "constrain/states.hpp"

namespace constrain {

class GrammarForeign {
 public:
  using PlaceId = uint32_t;
  static constexpr size_t kNumber = kEmbeddedWords, kObligation = kEmbeddedWords + 1;

  GrammarForeign(const Program& program, LexicalPool& pool);

  uint32_t count() const { return static_cast<uint32_t>(roots_.size()); }
  // Of each program, whether it has any text.
  std::vector<uint8_t> all_possible() const;
  // Of each program, bytes that its texts can begin with, and maybe more.
  std::vector<ByteSet> first_bytes();
  // The machine of a program, for what may make new things.
  Machine& use(uint32_t number);
  // For what only asks.
  Machine& machine(uint32_t number) { return *machines_[roots_[number].machine].machine; }
  const Machine& machine(uint32_t number) const {
    return *machines_[roots_[number].machine].machine;
  }

  // Where the text of a program begins.
  PlaceId start(uint32_t number, uint32_t obligation);
  PlaceId place(Config config, uint32_t number, uint32_t obligation) {
    config.w[kNumber] = number;
    config.w[kObligation] = obligation;
    return places_.intern(config);
  }
  // Valid until the next place is made.
  const Config& at(PlaceId id) const { return places_.config(id); }
  size_t places() const { return places_.size(); }
  bool accepts(PlaceId id) { return machine(at(id).w[kNumber]).accepts(at(id)); }
  // Something can be read here.
  bool reads(const Config& config, uint32_t number);

  // A short text of a program; null: none was found.
  const std::string* text(uint32_t number);

  void begin_trial();
  void end_trial();
  size_t bytes() const;
  uint64_t effort() const {
    uint64_t total = 0;
    for (const Embedded& one : machines_) total += one.machine->effort();
    return total;
  }

 private:
  struct Root {
    uint32_t machine = 0;
    Formula formula = Formulas::kFalse;
    uint32_t same_as = 0;    // the first number with this root
    PlaceId start = 0;       // without an obligation
    bool searched = false, found = false;   // for a text
    std::string text;
  };
  struct Embedded {
    std::unique_ptr<JsonMachine> machine;
    std::shared_ptr<const Program> options;
    bool in_trial = false;
  };

  std::vector<Embedded> machines_;
  std::vector<Root> roots_;
  StateTable places_;
  bool trial_ = false;
  size_t trial_places_ = 0;
  std::vector<uint32_t> tried_;   // machines that know of the trial
};

}  // namespace constrain
