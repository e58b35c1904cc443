#include "constrain/grammar_foreign.hpp"

namespace constrain {
namespace {

constexpr size_t kLongestText = size_t{1} << 20;
constexpr ByteSet kEveryByte{~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};

}  // namespace

GrammarForeign::GrammarForeign(const Program& program, LexicalPool& pool) {
  for (const auto& part : program.parts) {
    Root root;
    while (root.machine < machines_.size() &&
           !same_options(*machines_[root.machine].options, *part)) {
      ++root.machine;
    }
    if (root.machine == machines_.size()) {
      machines_.push_back({std::make_unique<JsonMachine>(*part, pool), part, false});
    }
    JsonMachine& machine = *machines_[root.machine].machine;
    root.formula = machine.add(part);
    root.same_as = static_cast<uint32_t>(roots_.size());
    for (uint32_t i = 0; i < roots_.size(); ++i) {
      if (roots_[i].machine == root.machine && roots_[i].formula == root.formula) {
        root.same_as = i;
        break;
      }
    }
    root.start = place(machine.start_at(root.formula), root.same_as, 0);
    roots_.push_back(std::move(root));
  }
}

std::vector<uint8_t> GrammarForeign::all_possible() const {
  std::vector<uint8_t> possible;
  for (const Root& root : roots_) possible.push_back(root.formula != Formulas::kFalse);
  return possible;
}

std::vector<ByteSet> GrammarForeign::first_bytes() {
  std::vector<ByteSet> first;
  for (uint32_t number = 0; number < count(); ++number) {
    ByteSet bytes;
    if (!machine(number).live_bytes(at(roots_[number].start), bytes)) bytes = kEveryByte;
    first.push_back(bytes);
  }
  return first;
}

Machine& GrammarForeign::use(uint32_t number) {
  Embedded& embedded = machines_[roots_[number].machine];
  if (trial_ && !embedded.in_trial) {
    embedded.machine->begin_trial();
    embedded.in_trial = true;
    tried_.push_back(roots_[number].machine);
  }
  return *embedded.machine;
}

GrammarForeign::PlaceId GrammarForeign::start(uint32_t number, uint32_t obligation) {
  const Root& root = roots_[number];
  return obligation == 0 ? root.start : place(at(root.start), root.same_as, obligation);
}

bool GrammarForeign::reads(const Config& config, uint32_t number) {
  // Every config can be completed, so one that is not complete reads.
  if (!machine(number).accepts(config)) return true;
  Machine& own = use(number);
  ByteSet live;
  if (!own.live_bytes(config, live)) live = kEveryByte;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    Config next = config;
    if (has_byte(live, static_cast<uint8_t>(byte)) && own.step(next, static_cast<uint8_t>(byte))) {
      return true;
    }
  }
  return false;
}

const std::string* GrammarForeign::text(uint32_t number) {
  Root& root = roots_[roots_[number].same_as];
  if (!root.searched) {
    root.searched = true;
    root.found = machines_[root.machine].machine->complete(at(root.start), root.text, kLongestText);
  }
  return root.found ? &root.text : nullptr;
}

void GrammarForeign::begin_trial() {
  trial_ = true;
  trial_places_ = places_.size();
}

void GrammarForeign::end_trial() {
  if (!trial_) return;
  trial_ = false;
  for (const uint32_t at : tried_) {
    machines_[at].machine->end_trial();
    machines_[at].in_trial = false;
  }
  tried_.clear();
  places_.truncate(trial_places_);
}

size_t GrammarForeign::bytes() const {
  size_t sum = places_.bytes();
  for (const Embedded& embedded : machines_) sum += sizeof(embedded) + embedded.machine->bytes();
  for (const Root& root : roots_) sum += sizeof(root) + root.text.capacity();
  return sum;
}

}  // namespace constrain
