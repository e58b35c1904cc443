// What masks ask of a grammar machine: units, unions, frames, bytes that may matter.
#include <algorithm>

#include "constrain/grammar_machine.hpp"

namespace constrain {

bool GrammarMachine::has_unit(const Item& item) {
  if (item.key < states_) return units_.unit(item.key).region != GrammarTables::kNone;
  if (!place_key(item.key) || obligation_of(item.key) != 0) return false;
  const Config& place = place_at(item.key);
  return foreign_.machine(place.w[GrammarForeign::kNumber]).lexical(place).present;
}

LexicalView GrammarMachine::lexical(const Config& config) {
  LexicalView view;
  if (is_place(config)) {
    view = foreign_.machine(number_of(config)).lexical(config);
    // What follows the document belongs to the grammar.
    view.cursor.context = LexCursor::kAnyText;
    return view;
  }
  const std::span<const Item> all = items(config);
  if (all.size() == 1 && has_unit(all[0])) {
    const GrammarUnits::Unit& unit = units_.unit(all[0].key);
    view.present = view.framed = true;
    view.cursor = {unit.region, unit.state, LexicalPool::kRegion};
    view.frame = all[0].key;
  } else if (all.size() > 1) {
    view.split = std::ranges::any_of(all, [&](const Item& item) { return has_unit(item); });
  }
  return view;
}

void GrammarMachine::parts(const Config& config, std::vector<Config>& out) {
  const std::vector<Item> all(items(config).begin(), items(config).end());
  accepts_ = unsure_ = false;
  for (const Item& item : all) {
    if (!has_unit(item)) continue;
    kept_.assign(1, item);
    out.push_back(pack());
  }
  kept_.clear();
  std::ranges::copy_if(all, std::back_inserter(kept_), [&](const Item& i) { return !has_unit(i); });
  if (!kept_.empty()) out.push_back(pack());
}

bool GrammarMachine::leave(Config& config, uint32_t outcome) {
  if (is_place(config)) {
    config.w[kForeign] &= ~kAccepts;
    return foreign_.use(number_of(config)).leave(config, outcome) && settle_place(config);
  }
  const Item item = items(config)[0];
  stacks_.set_budget(union_budget_);
  begin_set();
  add(units_.state_behind(item.key, outcome), item.stacks);
  return finish(config);
}

Config GrammarMachine::isolated(const Config& config) {
  accepts_ = unsure_ = false;
  kept_.assign(1, {items(config)[0].key, GrammarStacks::kOnlyBottom});
  return pack();
}

bool GrammarMachine::leave_frame(Config& config) {
  const StackId stacks = items(config)[0].stacks;
  stacks_.set_budget(union_budget_);
  begin_set();
  end(stacks, 0);
  return finish(config);
}

bool GrammarMachine::unsure(const Config& config) const {
  if (is_place(config)) return foreign_.machine(number_of(config)).unsure(config);
  return (config.w[0] & kUnsure) != 0;
}

bool GrammarMachine::exceptional_bytes(const Config& config, ByteSet& out) {
  return is_place(config) && foreign_.machine(number_of(config)).exceptional_bytes(config, out);
}

bool GrammarMachine::live_bytes(const Config& config, ByteSet& out) {
  if (is_place(config)) return foreign_.machine(number_of(config)).live_bytes(config, out);
  out = ByteSet{};
  for (const Item& item : items(config)) {
    if (place_key(item.key)) {
      const Config& place = place_at(item.key);
      ByteSet own;
      if (!foreign_.machine(place.w[GrammarForeign::kNumber]).live_bytes(place, own)) return false;
      for (size_t i = 0; i < out.size(); ++i) out[i] |= own[i];
      continue;
    }
    for (const auto& range : tables_.ranges(state_of(item.key))) {
      for (uint32_t byte = range.first; byte <= range.last; ++byte) add_byte(out, uint8_t(byte));
    }
  }
  return true;
}

}  // namespace constrain
