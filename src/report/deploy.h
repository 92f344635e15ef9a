// deploy.yaml: what is left of a configuration once a model is tuned: the model and how to evaluate and benchmark it.
#pragma once

#include <filesystem>

#include "kilter/config/config.h"
#include "kilter/tuning/tune.h"

namespace kilter {

//! Loads as a configuration again. `config` may be null. Throws Error when the file cannot be written.
void write_deploy_yaml(const std::filesystem::path& path, const std::filesystem::path& model,
                       const Config* config, const TuneResult& result);

}  // namespace kilter
