// The models of Intel's Model Zoo as data: how each is run for calibration, and what of it is quantized.
#pragma once

#include <string>
#include <vector>

namespace kilter::cli {

struct ZooModel {
    std::string name;
    std::string script;                                         // below the checkout of the zoo
    std::vector<std::string> arguments;                         // of the script
    std::string in_graph, data_location, model_source, direct;  // with {} for a path
    std::vector<std::string> inputs, outputs, excluded_ops, excluded_nodes;
    bool per_channel = false;
};

struct ZooPaths {
    std::string python, models_zoo, data_location, models_source;
};

std::vector<std::string> zoo_model_names();
//! From `config`, a JSON file of the documented form, or from those that kilter knows when it is empty. Throws Error.
ZooModel find_zoo_model(const std::string& name, const std::string& config);
//! The inference command, with {} for the graph. Throws Error when a path that the model needs is missing.
std::string launch_command(const ZooModel& model, const ZooPaths& paths);

}  // namespace kilter::cli
