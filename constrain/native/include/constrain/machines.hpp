// The machine that a program asks for.
#pragma once

#include <memory>

#include "constrain/lexical_pool.hpp"
#include "constrain/machine.hpp"
#include "constrain/program.hpp"

namespace constrain {

// Throws UnsatisfiableConstraint, LimitError, UnsupportedFeature or Error.
std::unique_ptr<Machine> make_machine(std::shared_ptr<const Program> program, LexicalPool& pool);

}  // namespace constrain
