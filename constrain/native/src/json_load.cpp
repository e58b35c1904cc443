// Programs to formulas, and object tables.
#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/json_theory.hpp"

namespace constrain {

namespace {
constexpr uint32_t kUnset = 0xFFFFFFFFu;
constexpr int kMaxLoadDepth = 4000;
}  // namespace

JsonTheory::JsonTheory(bool plain_numbers, LexicalPool& pool)
    : pool_(pool), numbers_(pool.numbers(plain_numbers)) {
  for (const ValueKind kind : {ValueKind::kNull, ValueKind::kTrue, ValueKind::kFalse})
    values_.push_back({kind, 0});
  values_.push_back({ValueKind::kNull, kUnset});  // kUnknownValue
  free_ = atom(Fop::kType, 99);                   // no type: never true of a value by itself
}

Formula JsonTheory::add(std::shared_ptr<const Program> program) {
  const int32_t root = program->root;
  for (uint32_t at = 0; at < sources_.size(); ++at) {
    if (same_nodes(*sources_[at]->program, *program)) return load_in(at, root);
  }
  auto source = std::make_unique<Source>();
  source->loaded.assign(program->nodes.size() / 3, kUnset);
  source->regexes.assign(program->regexes.size(), kUnset);
  source->strings.reserve(program->strings.size());
  for (const std::string& s : program->strings) source->strings.push_back(pool_.text(s));
  source->constants.assign(program->values.size() / 3, kUnset);
  source->first_ref = uint32_t(refs_.size());
  const auto at = uint32_t(sources_.size());
  for (const int32_t node : program->refs) refs_.push_back({at, node});
  source->program = std::move(program);
  sources_.push_back(std::move(source));
  return load_in(at, root);
}

// Loading may ask about a formula that refers to another program.
Formula JsonTheory::load_in(uint32_t source, int32_t node) {
  const uint32_t outer = source_;
  source_ = source;
  const Formula f = load(node);
  source_ = outer;
  return f;
}

Formula JsonTheory::load(int32_t node) {
  if (const Formula f = source().loaded[size_t(node)]; f != kUnset) return f;
  if (++load_depth_ > kMaxLoadDepth)
    throw LimitError("the schema nests in-place keywords too deeply", "nesting");
  if (load_depth_ % 16 == 0 || node % 64 == 0) poll();
  const Formula f = load_uncached(node);
  --load_depth_;
  source().loaded[size_t(node)] = f;
  return f;
}

Formula JsonTheory::load_uncached(int32_t node) {
  const int32_t* row = &program().nodes[size_t(node) * 3];
  const Op op = Op(row[0]);
  const int32_t a = row[1], b = row[2];
  const int32_t* args = program().args.data();
  const auto lexical = [&](LexId id) {
    return id == LexicalPool::kAnything ? kTrue : atom(Fop::kStringIn, id);
  };
  const auto number = [&](NumberId id) {
    return id == kAnyNumber ? kTrue : atom(Fop::kNumberIn, id);
  };
  const auto array = [&](Formula f) { return f == kTrue ? kTrue : atom(Fop::kArrayIs, f); };
  const auto object = [&](Formula f) { return f == kTrue ? kTrue : atom(Fop::kObjectIs, f); };
  const auto decimal = [&](int32_t index) {
    return numbers_.value(Decimal::parse(program().strings[size_t(index)]));
  };
  switch (op) {
    case Op::kFalse: return kFalse;
    case Op::kTrue: return kTrue;
    case Op::kAnd:
    case Op::kOr:
    case Op::kOne: {
      std::vector<Formula> parts;
      for (int32_t i = 0; i < b; ++i) parts.push_back(load(args[a + i]));
      return op == Op::kAnd ? all_of(parts) : op == Op::kOr ? any_of(parts) : exactly_one(parts);
    }
    case Op::kNot: return negate(load(a));
    case Op::kType: return atom(Fop::kType, uint32_t(a));
    case Op::kRef: return atom(Fop::kRef, source().first_ref + uint32_t(a));
    case Op::kEnum: {
      std::vector<uint32_t> values;
      for (int32_t i = 0; i < b; ++i) values.push_back(constant(uint32_t(args[a + i])));
      return in_values(std::move(values));
    }
    case Op::kRegex: {
      LexId& id = source().regexes[size_t(a)];
      if (id == kUnset) id = pool_.regex(program().regexes[size_t(a)]);
      return lexical(id);
    }
    case Op::kStrings: {
      std::vector<std::vector<uint32_t>> texts;
      for (int32_t i = 0; i < b; ++i)
        texts.push_back(pool_.text_code_points(source().strings[size_t(args[a + i])]));
      return lexical(pool_.strings(pool_.sets().from(std::move(texts))));
    }
    case Op::kMinLength: return lexical(pool_.min_length(uint32_t(a)));
    case Op::kMaxLength: return lexical(pool_.max_length(uint32_t(a)));
    case Op::kMinimum: return number(numbers_.minimum(decimal(a), b != 0));
    case Op::kMaximum: return number(numbers_.maximum(decimal(a), b != 0));
    case Op::kMultipleOf: return number(numbers_.multiple_of(decimal(a)));
    case Op::kInteger: return number(numbers_.integer());
    case Op::kIntegerLexical: return number(numbers_.integer_lexical());
    case Op::kObject: return load_object(args + a);
    case Op::kHas: return object(atom(Fop::kHas, source().strings[size_t(a)]));
    case Op::kUnevaluatedProperties: {
      std::vector<uint32_t> sources;
      for (int32_t i = 0; i < args[b]; ++i) {
        sources.push_back(matcher(args[b + 1 + 2 * i]));
        sources.push_back(load(args[b + 2 + 2 * i]));
      }
      return object(unevaluated_p(load(a), sources));
    }
    case Op::kArray: return load_array(args + a);
    case Op::kContainsMin: return array(contains_min(load(a), uint32_t(b)));
    case Op::kContainsMax: return array(contains_max(load(a), uint32_t(b)));
    case Op::kUnique: return array(atom(Fop::kUniq));
    case Op::kUnevaluatedItems: {
      std::vector<uint32_t> sources;
      for (int32_t i = 0; i < args[b]; ++i) {
        const int32_t* s = args + b + 1 + 3 * i;
        sources.push_back(uint32_t(s[0]));
        sources.push_back(s[0] == 2 ? load(s[1]) : uint32_t(s[1]));
        sources.push_back(load(s[2]));
      }
      return array(unevaluated_i(load(a), sources));
    }
  }
  throw Error("unknown operator in program");
}

// The strings that satisfy a node, read off the program itself: a schema for property names may
// refer back to the object that it belongs to, which is not loaded yet, but says nothing of strings.
LexId JsonTheory::matcher(int32_t node) {
  const uint32_t known = source().matchers.find(uint64_t(node));
  if (known != FlatMap::kMissing) return known;
  const int32_t* row = &program().nodes[size_t(node) * 3];
  const Op op = Op(row[0]);
  const int32_t a = row[1], b = row[2];
  LexId r = LexicalPool::kAnything;
  if (++load_depth_ > kMaxLoadDepth)
    throw LimitError("the schema nests in-place keywords too deeply", "nesting");
  switch (op) {
    case Op::kAnd:
    case Op::kOr:
    case Op::kOne: {
      std::vector<LexId> parts;
      for (int32_t i = 0; i < b; ++i) parts.push_back(matcher(program().args[size_t(a + i)]));
      r = op == Op::kAnd  ? pool_.all_of(parts)
          : op == Op::kOr ? pool_.any_of(parts)
                          : pool_.exactly_one(parts);
      break;
    }
    case Op::kNot: r = pool_.negate(matcher(a)); break;
    case Op::kRef: r = matcher(program().refs[size_t(a)]); break;
    case Op::kFalse:
    case Op::kType:
    case Op::kEnum:
    case Op::kRegex:
    case Op::kStrings:
    case Op::kMinLength:
    case Op::kMaxLength: r = string_language(load(node)); break;
    default: break;  // about other types, so true of every string
  }
  --load_depth_;
  source().matchers.set(uint64_t(node), r);
  return r;
}

Formula JsonTheory::load_object(const int32_t* row) {
  std::vector<std::pair<TextId, Formula>> properties;
  std::vector<std::pair<LexId, Formula>> generics;
  std::vector<TextId> required;
  std::vector<LexId> matched;
  std::vector<std::vector<uint32_t>> texts;
  const int32_t n_properties = *row++;
  for (int32_t i = 0; i < n_properties; ++i, row += 2) {
    const TextId key = source().strings[size_t(row[0])];
    properties.push_back({key, load(row[1])});
    texts.push_back(pool_.text_code_points(key));
  }
  const int32_t n_patterns = *row++;
  for (int32_t i = 0; i < n_patterns; ++i, row += 2) {
    const LexId keys = matcher(row[0]);
    const Formula f = load(row[1]);
    if (f != kTrue) generics.push_back({keys, f});
    matched.push_back(keys);
  }
  const Formula additional = load(*row++);
  const LexId names = matcher(*row++);
  if (additional != kTrue) {
    matched.push_back(pool_.strings(pool_.sets().from(texts)));
    for (LexId& m : matched) m = pool_.negate(m);
    generics.push_back({pool_.all_of(matched), additional});
  }
  if (names != LexicalPool::kAnything) generics.push_back({pool_.negate(names), kFalse});
  const int32_t n_required = *row++;
  for (int32_t i = 0; i < n_required; ++i) required.push_back(source().strings[size_t(*row++)]);
  const uint32_t least = uint32_t(row[0]);
  const uint32_t most = row[1] < 0 ? UINT32_MAX : uint32_t(row[1]);
  // A table is only worth its place where it says something.
  if (properties.empty() && generics.empty() && required.empty() && least == 0 &&
      most == UINT32_MAX)
    return kTrue;
  const Formula t =
      table_from(std::move(properties), std::move(generics), std::move(required), least, most);
  return t == kTrue ? kTrue : atom(Fop::kObjectIs, t);
}

Formula JsonTheory::load_array(const int32_t* row) {
  std::vector<Formula> parts;
  const int32_t n = *row++;
  for (int32_t i = 0; i < n; ++i) parts.push_back(at(uint32_t(i), load(*row++)));
  parts.push_back(all_i(uint32_t(n), load(*row++)));
  parts.push_back(min_i(uint32_t(row[0])));
  if (row[1] >= 0) parts.push_back(atom(Fop::kMaxI, uint32_t(row[1])));
  const Formula f = all_of(parts);
  return f == kTrue ? kTrue : atom(Fop::kArrayIs, f);
}

Formula JsonTheory::table_from(std::vector<std::pair<TextId, Formula>> properties,
                               std::vector<std::pair<LexId, Formula>> generics,
                               std::vector<TextId> required, uint32_t least, uint32_t most) {
  if (least > most) return kFalse;
  auto t = std::make_unique<ObjectTable>();
  std::unordered_map<TextId, std::vector<Formula>> own;
  for (const auto& [key, f] : properties) own[key].push_back(f);
  std::unordered_map<TextId, bool> is_required;
  for (const TextId key : required) is_required[key] = true;
  std::vector<std::pair<std::vector<uint32_t>, TextId>> all;
  std::unordered_map<TextId, uint32_t> rank;
  const auto add = [&](TextId key) {
    if (rank.try_emplace(key, uint32_t(rank.size())).second)
      all.push_back({pool_.text_code_points(key), key});
  };
  for (const auto& [key, f] : properties) add(key);
  for (const TextId key : required) add(key);
  for (const auto& [keys, f] : generics) {
    if (!pool_.has_sets(keys)) continue;
    for (const auto& text : pool_.sets().members(pool_.union_of_sets(keys)))
      add(pool_.text(text));
  }
  std::sort(all.begin(), all.end());
  std::vector<std::vector<uint32_t>> texts;
  for (const auto& [text, key] : all) {
    t->index[key] = uint32_t(t->names.size());
    t->names.push_back(key);
    t->rank.push_back(rank[key]);
    texts.push_back(text);
    std::vector<Formula> goal;
    if (const auto it = own.find(key); it != own.end()) goal = it->second;
    for (const auto& [keys, f] : generics)
      if (pool_.contains(keys, key)) goal.push_back(f);
    t->goals.push_back(all_of(goal));
    t->required.push_back(is_required.count(key) != 0);
    t->count_required += t->required.back();
  }
  t->name_set = pool_.sets().from(std::move(texts));
  t->generics = std::move(generics);
  t->least = least;
  t->most = most;
  const uint32_t id = uint32_t(tables_.size());
  tables_.push_back(std::move(t));
  return atom(Fop::kTable, id, 0, 0);
}

Formula JsonTheory::merge_tables(const std::vector<Formula>& tables) {
  const uint32_t list = lists.intern(tables);
  const uint32_t known = merged_.find(list);
  if (known != FlatMap::kMissing) return known;
  std::vector<std::pair<TextId, Formula>> properties;
  std::vector<std::pair<LexId, Formula>> generics;
  std::vector<TextId> required;
  uint32_t least = 0, most = UINT32_MAX;
  for (const Formula f : tables) {
    const ObjectTable& t = table((*this)[f].a);
    // A table's goals include its own generics, so those are passed on for all names; applying
    // one twice changes nothing.
    std::vector<size_t> declared(t.names.size());
    for (size_t i = 0; i < declared.size(); ++i) declared[t.rank[i]] = i;
    for (const size_t i : declared) {
      properties.push_back({t.names[i], t.goals[i]});
      if (t.required[i]) required.push_back(t.names[i]);
    }
    generics.insert(generics.end(), t.generics.begin(), t.generics.end());
    least = std::max(least, t.least);
    most = std::min(most, t.most);
  }
  std::sort(generics.begin(), generics.end());
  generics.erase(std::unique(generics.begin(), generics.end()), generics.end());
  const Formula r =
      table_from(std::move(properties), std::move(generics), std::move(required), least, most);
  merged_.set(list, r);
  return r;
}

// Everything about a table that needs satisfiability, on first use.
void JsonTheory::prepare(ObjectTable& t) {
  if (t.prepared) return;
  t.prepared = true;
  t.allowed.resize(t.names.size());
  for (size_t i = 0; i < t.names.size(); ++i) {
    t.allowed[i] = satisfiable(t.goals[i]);
    if (t.required[i] && !t.allowed[i]) t.possible = false;
  }
  // Other keys: what holds of all of them, what is forbidden, what depends on the key.
  std::vector<Formula> always;
  std::vector<LexId> forbidden, when;
  for (const auto& [keys, f] : t.generics) {
    const LexId base = pool_.without_sets(keys);
    if (base == LexicalPool::kNothing || f == kTrue) continue;
    if (base == LexicalPool::kAnything) {
      always.push_back(f);
    } else if (f == kFalse) {
      forbidden.push_back(pool_.negate(base));
    } else {
      const auto it = std::find(when.begin(), when.end(), base);
      if (it == when.end()) {
        when.push_back(base);
        t.others_when.push_back(f);
      } else {
        Formula& known = t.others_when[size_t(it - when.begin())];
        known = both(known, f);
      }
    }
  }
  t.others_always = all_of(always);
  t.others = satisfiable(t.others_always) ? pool_.all_of(forbidden) : LexicalPool::kNothing;
  if (!pool_.live(t.others)) t.others = LexicalPool::kNothing;
  if (t.others != LexicalPool::kNothing && !when.empty()) {
    // Classes of keys whose goals contradict each other drop out; beyond the bound they are found
    // when the key closes.
    std::vector<std::pair<LexId, Formula>> classes{{t.others, t.others_always}};
    const uint64_t searched = pool_.search_work();
    for (size_t i = 0; i < when.size() && classes.size() <= 64; ++i) {
      if (pool_.search_work() - searched > kPrepareWork) break;
      std::vector<std::pair<LexId, Formula>> next;
      for (const auto& [language, goal] : classes) {
        const LexId in = pool_.both(language, when[i]);
        const LexId out = pool_.both(language, pool_.negate(when[i]));
        if (pool_.live(in)) {
          const Formula g = both(goal, t.others_when[i]);
          if (satisfiable(g)) next.push_back({in, g});
          else t.others = pool_.both(t.others, pool_.negate(in));
        }
        if (pool_.live(out)) next.push_back({out, goal});
      }
      classes = std::move(next);
    }
    if (!pool_.live(t.others)) t.others = LexicalPool::kNothing;
  }
  t.tracked = t.others == LexicalPool::kNothing || when.empty() ? 0 : pool_.list(when);
  if (t.others != LexicalPool::kNothing) {
    const LexId outside = pool_.both(t.others, pool_.negate(pool_.strings(t.name_set)));
    if (pool_.live(outside)) t.others_count = pool_.count(outside, kFewKeys);
  }
  // The trie of names, children contiguous.
  struct Open {
    uint32_t node, depth, low, high;
  };
  std::vector<std::vector<uint32_t>> texts;
  for (const TextId key : t.names) texts.push_back(pool_.text_code_points(key));
  t.trie.push_back({0, 0, 0, 0, uint32_t(texts.size()), kNoName});
  std::vector<Open> work{{0, 0, 0, uint32_t(texts.size())}};
  while (!work.empty()) {
    Open o = work.back();
    work.pop_back();
    if (o.low < o.high && texts[o.low].size() == o.depth) t.trie[o.node].name = o.low++;
    const uint32_t first = uint32_t(t.trie.size());
    t.trie[o.node].first_child = first;
    for (uint32_t i = o.low; i < o.high;) {
      const uint32_t c = texts[i][o.depth];
      uint32_t j = i;
      while (j < o.high && texts[j][o.depth] == c) ++j;
      t.trie.push_back({c, 0, 0, i, j, kNoName});
      i = j;
    }
    t.trie[o.node].children = uint32_t(t.trie.size()) - first;
    for (uint32_t k = first; k < first + t.trie[o.node].children; ++k)
      work.push_back({k, o.depth + 1, t.trie[k].low, t.trie[k].high});
  }
}

uint32_t JsonTheory::bit_set(uint32_t bits, uint32_t index) {
  std::vector<uint32_t> words = lists.copy(bits);
  if (words.size() <= index / 32) words.resize(index / 32 + 1);
  words[index / 32] |= 1u << (index % 32);
  return lists.intern(words);
}

bool JsonTheory::bit(uint32_t bits, uint32_t index) const {
  const auto words = lists.get(bits);
  return index / 32 < words.size() && (words[index / 32] >> (index % 32) & 1) != 0;
}

uint32_t JsonTheory::required_missing(const ObjectTable& t, uint32_t bits) const {
  uint32_t missing = t.count_required;
  if (missing == 0 || bits == 0) return missing;
  const auto words = lists.get(bits);
  for (size_t w = 0; w < words.size(); ++w)
    for (uint32_t rest = words[w]; rest != 0; rest &= rest - 1)
      missing -= t.required[w * 32 + size_t(__builtin_ctz(rest))];
  return missing;
}

uint32_t JsonTheory::count_after(const ObjectTable& t, uint32_t count) const {
  return t.most == UINT32_MAX ? std::min(count + 1, t.least) : count + 1;
}

Formula JsonTheory::others_goal(ObjectTable& t, uint32_t outcome) {
  const auto it = t.others_goal.find(outcome);
  if (it != t.others_goal.end()) return it->second;
  std::vector<Formula> parts{t.others_always};
  const std::vector<uint32_t> bits = pool_.list_copy(outcome);
  for (size_t i = 0; i < bits.size(); ++i)
    if (bits[i]) parts.push_back(t.others_when[i]);
  const Formula goal = all_of(parts);
  t.others_goal[outcome] = goal;
  return goal;
}

// ------------------------------------------------------------------ constants

ValueId JsonTheory::value(ValueKind kind, uint32_t a) {
  if (kind <= ValueKind::kFalse) return ValueId(kind);
  const uint64_t key = pack(uint32_t(kind), a);
  const uint32_t known = value_index_.find(key);
  if (known != FlatMap::kMissing) return known;
  const ValueId id = ValueId(values_.size());
  values_.push_back({kind, a});
  value_index_.set(key, id);
  return id;
}

ValueId JsonTheory::constant(uint32_t index) {
  if (source().constants[index] != kUnset) return source().constants[index];
  if (++load_depth_ > kMaxLoadDepth) throw LimitError("a constant nests too deeply", "nesting");
  const int32_t* row = &program().values[size_t(index) * 3];
  const ValueKind kind = ValueKind(row[0]);
  uint32_t a = 0;
  if (kind == ValueKind::kNumber) {
    a = numbers_.value(Decimal::parse(program().strings[size_t(row[1])]));
  } else if (kind == ValueKind::kString) {
    a = source().strings[size_t(row[1])];
  } else if (kind == ValueKind::kArray) {
    std::vector<uint32_t> items;
    for (int32_t i = 0; i < row[2]; ++i)
      items.push_back(constant(uint32_t(program().args[size_t(row[1] + i)])));
    a = lists.intern(items);
  } else if (kind == ValueKind::kObject) {
    std::vector<std::pair<uint32_t, uint32_t>> members;
    for (int32_t i = 0; i < row[2]; ++i) {
      const int32_t* pair = &program().args[size_t(row[1] + 2 * i)];
      members.push_back({source().strings[size_t(pair[0])], constant(uint32_t(pair[1]))});
    }
    std::sort(members.begin(), members.end());
    std::vector<uint32_t> flat;
    for (const auto& [k, v] : members) flat.insert(flat.end(), {k, v});
    a = lists.intern(flat);
  }
  --load_depth_;
  return source().constants[index] = value(kind, a);
}

size_t JsonTheory::bytes() const {
  size_t total = Formulas::bytes() + tuples_.bytes() + string_memo_.bytes() +
                 number_memo_.bytes() + typed_memo_[0].bytes() + typed_memo_[1].bytes() +
                 key_memo_.bytes() + item_memo_.bytes() + done_memo_.bytes() +
                 holds_memo_.bytes() + value_index_.bytes() + values_.capacity() * sizeof(Value);
  for (const auto& t : tables_)
    total += sizeof(ObjectTable) + t->names.capacity() * 64 + t->trie.capacity() * 24 +
             t->generics.capacity() * 8;
  total += sat_memo_.size() * 48 + child_memo_.size() * 64 + keys_memo_.size() * 48 +
           names_memo_.size() * 96 + class_memo_.size() * 96 + domain_memo_.size() * 64 + cheapest_.size() * 48;
  return total;
}

}  // namespace constrain
