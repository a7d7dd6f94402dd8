#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>
