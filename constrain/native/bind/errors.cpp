// Exceptions of the core become the classes of constrain.errors.
#include <exception>
#include <string>

#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace constrain::bind {

TokenRejected::TokenRejected(int64_t id, std::string_view bytes, std::string wanted)
    : Error("token " + std::to_string(id) + " is not allowed here"),
      token(id),
      has_text(!bytes.empty()),
      text(bytes),
      expected(std::move(wanted)) {}

namespace {

std::string nothing_allowed(const std::vector<int64_t>& rows) {
  std::string message = "no token of the vocabulary continues the text of row ";
  for (size_t i = 0; i < rows.size(); ++i) {
    message += (i ? ", " : "") + std::to_string(rows[i]);
  }
  return message + " towards a valid one; its end-of-sequence tokens were left open";
}

}  // namespace

NothingAllowed::NothingAllowed(std::vector<int64_t> which)
    : Error(nothing_allowed(which)), rows(std::move(which)) {}

BudgetExceeded::BudgetExceeded(std::vector<int64_t> which, uint32_t remaining, uint32_t tokens)
    : Error("the text cannot be finished within the " + std::to_string(remaining) +
            " tokens that remain: " +
            (tokens == Budget::kNever ? std::string("no completion of it is known")
                                      : "it needs " + std::to_string(tokens)) +
            (which.empty() ? std::string() : " (row " + std::to_string(which[0]) + ")")),
      rows(std::move(which)),
      needed(tokens) {}

namespace {

// Sets the Python error `constrain.errors.<name>(message, **fields)`.
void raise(const char* name, const std::string& message, const nb::dict& fields,
           const nb::object& rows = {}) {
  nb::object type = nb::module_::import_("constrain.errors").attr(name);
  nb::object error = type(nb::str(message.data(), message.size()), **fields);
  if (rows.is_valid()) error.attr("rows") = rows;
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  nb::dict fields;
  try {
    std::rethrow_exception(pointer);
  } catch (const Interrupted&) {
    // The signal handler has raised what is to be raised.
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const TokenRejected& e) {
    nb::object text = nb::none();
    std::string message = e.what();
    if (e.has_text) {
      text = nb::bytes(e.text.data(), e.text.size());
      message = "token " + std::to_string(e.token) + " (" + nb::repr(text).c_str() +
                ") is not allowed here";
    }
    if (!e.expected.empty()) message += "; expected " + e.expected;
    fields["token_id"] = e.token;
    fields["text"] = text;
    fields["expected"] = nb::str(e.expected.data(), e.expected.size());
    raise("TokenRejectedError", message, fields);
  } catch (const BudgetExceeded& e) {
    nb::list rows;
    for (const int64_t row : e.rows) rows.append(row);
    fields["limit"] = "remaining";
    if (e.needed != Budget::kNever) fields["needed"] = e.needed;
    raise("LimitExceededError", e.what(), fields, rows);
  } catch (const LimitError& e) {
    fields["limit"] = e.limit;
    raise("LimitExceededError", e.what(), fields);
  } catch (const UnsupportedFeature& e) {
    raise("UnsupportedError", e.what(), fields);
  } catch (const UnsatisfiableConstraint& e) {
    raise("UnsatisfiableError", e.what(), fields);
  } catch (const NothingAllowed& e) {
    nb::list rows;
    for (const int64_t row : e.rows) rows.append(row);
    raise("UnsatisfiableError", e.what(), fields, rows);
  } catch (const Error& e) {
    raise("ConstrainError", e.what(), fields);
  }
}

}  // namespace

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace constrain::bind
