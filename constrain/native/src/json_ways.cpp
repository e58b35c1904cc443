// Completions of objects that need no search.
//
// Most schemas with alternatives are tables beside one `oneOf` or `anyOf` of tables.  There an
// alternative is completed by writing the names it requires, while the others stay false because a
// name that each of them requires stays away.  What is found here is a proof; where nothing is
// found the general search decides.
#include <algorithm>

#include "constrain/json_theory.hpp"

namespace constrain {

bool JsonTheory::fits(const Way& way, KeyClass key) {
  const bool required =
      !key.is_class && std::binary_search(way.required.begin(), way.required.end(), key.id);
  if (!required && way.required.size() >= way.room) return false;
  std::vector<Formula> parts;
  for (const Formula t : way.tables) parts.push_back(asked_of(t, key));
  return satisfiable(all_of(parts));
}

// Fills in what the tables of the way require; false: they cannot come true so simply.
bool JsonTheory::find_way(Way& way, StringSet seen) {
  uint64_t least = 0;
  for (const Formula f : way.tables) {
    const FormulaNode n = (*this)[f];
    const ObjectTable& t = table(n.a);
    if (t.least > n.c) least = std::max<uint64_t>(least, t.least - n.c);
    if (t.most != UINT32_MAX) {
      if (n.c > t.most) return false;
      way.room = std::min<uint64_t>(way.room, t.most - n.c);
    }
    if (t.count_required == 0) continue;
    for (size_t i = 0; i < t.names.size(); ++i)
      if (t.required[i] && !bit(n.b, uint32_t(i))) way.required.push_back(t.names[i]);
  }
  std::sort(way.required.begin(), way.required.end());
  way.required.erase(std::unique(way.required.begin(), way.required.end()), way.required.end());
  if (way.required.size() > way.room || least > way.required.size()) return false;
  for (const TextId key : way.required) {
    const auto text = pool_.text_code_points(key);
    if (pool_.sets().contains(seen, text) || pool_.sets().contains(way.avoid, text)) return false;
    if (!fits(way, {false, key})) return false;
  }
  return true;
}

// Looks for one member whose value can tell this way from all of the `rest` (a discriminator), and
// requires it.
bool JsonTheory::discriminate(Way& way, const std::vector<Way>& alternatives,
                              const std::vector<size_t>& rest, StringSet seen) {
  for (const Formula f : way.tables) {
    const ObjectTable& t = table((*this)[f].a);
    for (const TextId name : t.names) {
      const KeyClass key{false, name};
      std::vector<Formula> parts, apart;
      for (const Formula x : way.tables) parts.push_back(asked_of(x, key));
      bool differs = true;
      for (const size_t j : rest) {
        std::vector<Formula> theirs;
        for (const Formula x : alternatives[j].tables) theirs.push_back(asked_of(x, key));
        const Formula no = negate(all_of(theirs));
        differs &= no != kFalse;
        apart.push_back(no);
      }
      if (!differs) continue;
      const auto text = pool_.text_code_points(name);
      if (pool_.sets().contains(seen, text) || pool_.sets().contains(way.avoid, text)) continue;
      const auto at = std::lower_bound(way.required.begin(), way.required.end(), name);
      const bool known = at != way.required.end() && *at == name;
      if (!known && way.required.size() >= way.room) continue;
      const Formula told_by = all_of(apart);
      parts.push_back(told_by);
      if (!satisfiable(all_of(parts))) continue;
      way.told_apart = name;
      way.told_by = told_by;
      if (!known) way.required.insert(at, name);
      return true;
    }
  }
  return false;
}

std::vector<JsonTheory::Way> JsonTheory::easy_ways(Formula f, StringSet seen, size_t most) {
  std::vector<Way> ways;
  Way base;
  Formula choice = kTrue;
  for (const Formula c : conjuncts(f)) {
    switch (op(c)) {
      case Fop::kTable: base.tables.push_back(c); break;
      case Fop::kHas: base.required.push_back((*this)[c].a); break;
      case Fop::kOr:
      case Fop::kOne:
        if (choice != kTrue) return ways;
        choice = c;
        break;
      default: return ways;
    }
  }
  if (choice == kTrue) {
    if (find_way(base, seen)) ways.push_back(std::move(base));
    return ways;
  }
  // Each alternative as tables and names that it requires.
  const std::vector<Formula> parts = lists.copy((*this)[choice].a);
  std::vector<Way> alternatives;
  for (const Formula p : parts) {
    Way w;
    for (const Formula c : conjuncts(p)) {
      if (op(c) == Fop::kTable) w.tables.push_back(c);
      else if (op(c) == Fop::kHas) w.required.push_back((*this)[c].a);
      else if (op(choice) == Fop::kOne) return {};
      else w.room = 0;
    }
    alternatives.push_back(std::move(w));
  }
  for (size_t i = 0; i < alternatives.size() && ways.size() < most; ++i) {
    if (alternatives[i].room == 0) continue;
    Way way = base;
    way.tables.insert(way.tables.end(), alternatives[i].tables.begin(),
                      alternatives[i].tables.end());
    way.required.insert(way.required.end(), alternatives[i].required.begin(),
                        alternatives[i].required.end());
    if (!find_way(way, seen)) continue;
    std::vector<size_t> rest;  // alternatives that nothing keeps false so far
    std::vector<TextId> avoided;
    for (size_t j = 0; j < alternatives.size() && op(choice) == Fop::kOne; ++j) {
      if (j == i) continue;
      // A name that the other alternative requires and this way does not.
      TextId missing = 0;
      bool found = false;
      const auto consider = [&](TextId key) {
        if (found || std::binary_search(way.required.begin(), way.required.end(), key)) return;
        missing = key;
        found = true;
      };
      for (const TextId key : alternatives[j].required) consider(key);
      for (const Formula t : alternatives[j].tables) {
        const FormulaNode n = (*this)[t];
        const ObjectTable& other = table(n.a);
        if (other.count_required == 0) continue;
        for (size_t k = 0; k < other.names.size() && !found; ++k)
          if (other.required[k] && !bit(n.b, uint32_t(k))) consider(other.names[k]);
      }
      if (!found) {
        rest.push_back(j);
      } else if (std::find(avoided.begin(), avoided.end(), missing) == avoided.end()) {
        avoided.push_back(missing);
        way.avoid = pool_.sets().add(way.avoid, pool_.text_code_points(missing));
      }
    }
    if (rest.empty() || discriminate(way, alternatives, rest, seen))
      ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace constrain
