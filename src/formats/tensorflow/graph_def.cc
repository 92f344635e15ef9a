#include "formats/tensorflow/graph_def.h"

#include <limits>

#include "base/fail.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "formats/tensorflow/messages.h"
#include "formats/tensorflow/text_format.h"

namespace kilter::tensorflow {
namespace {

// What protobuf libraries accept.
constexpr size_t kMaxGraphDef = std::numeric_limits<int32_t>::max();

TfGraph checked(std::string_view content, const Keeper& keeper) {
    require(!content.empty(), "the file is empty");
    if (is_text_graph(content)) {
        auto binary = std::make_shared<const std::string>(graph_def_from_text(content));
        TfGraph graph = read_graph(*binary, binary);
        check(graph);
        return graph;
    }
    TfGraph graph = read_graph(content, keeper);
    check(graph);
    return graph;
}

protobuf::Message serialized(const TfGraph& graph) {
    protobuf::Message message = write_graph(graph);
    require(message.size() <= kMaxGraphDef, "the graph has {} bytes; a GraphDef holds at most {}",
            message.size(), kMaxGraphDef);
    return message;
}

}  // namespace

TfGraph read_graph_def(const std::filesystem::path& path) {
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    try {
        TfGraph graph =
            checked({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()}, file);
        graph.source = path.string();
        return graph;
    } catch (const Error& error) {
        throw error.in(path.string());
    }
}

TfGraph read_graph_def_bytes(std::span<const std::byte> bytes) {
    auto copy =
        std::make_shared<const std::string>(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return checked(*copy, copy);
}

void write_graph_def(const TfGraph& graph, const std::filesystem::path& path) {
    const protobuf::Message message = serialized(graph);
    OutputFile file(path);
    if (path.extension() == ".pbtxt")
        file.write(graph_def_to_text(message.str()));
    else
        message.visit([&](const void* data, size_t size) { file.write(data, size); });
    file.commit();
}

std::string write_graph_def_bytes(const TfGraph& graph) { return serialized(graph).str(); }

}  // namespace kilter::tensorflow
