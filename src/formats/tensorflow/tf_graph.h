// TfGraph: a GraphDef in memory, as faithful as its file: every node, attribute and function survives a round trip,
// known to kilter or not. Weights stay in the mapped file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "formats/tensorflow/tf_tensor.h"
#include "formats/tensorflow/tf_type.h"

namespace kilter::tensorflow {

struct TfFunctionCall;

//! Bytes of a file (or of whatever `keeper` keeps alive).
struct Bytes {
    std::string_view view;
    std::shared_ptr<const void> keeper;
};

//! Inside a function body: the value is the caller's attribute of this name.
struct TfPlaceholder {
    std::string name;
};

//! An attribute that kilter does not interpret: its serialized AttrValue.
struct TfForeign {
    std::string bytes;
};

//! A list has one kind of elements; which one an empty list was meant to have the file does not tell.
struct TfList {
    std::vector<std::string> strings;
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<bool> bools;
    std::vector<TfType> types;
    std::vector<TfShape> shapes;
    std::vector<TfTensor> tensors;
    std::vector<TfFunctionCall> functions;
};

//! monostate: the attribute is there but has no value.
using TfValue =
    std::variant<std::monostate, std::string, int64_t, float, bool, TfType, TfShape, TfTensor, TfPlaceholder,
                 TfForeign, std::shared_ptr<const TfFunctionCall>, std::shared_ptr<const TfList>>;

//! "an integer", "a list", …: for messages.
std::string_view kind_of(const TfValue& value);

//! Attributes by name, in the order of the file. Getters return the default when the attribute is absent and throw Error
//! when it has another type.
class TfAttributes {
  public:
    using Entry = std::pair<std::string, TfValue>;

    bool has(std::string_view name) const { return find(name) != nullptr; }
    const TfValue* find(std::string_view name) const;
    void set(std::string_view name, TfValue value);
    void set(std::string_view name, TfList list);
    void set(std::string_view name, const char* text) { set(name, TfValue(std::string(text))); }
    void erase(std::string_view name);

    int64_t get_int(std::string_view name, int64_t absent = 0) const;
    float get_float(std::string_view name, float absent = 0.0F) const;
    bool get_bool(std::string_view name, bool absent = false) const;
    std::string get_string(std::string_view name, std::string_view absent = {}) const;
    TfType get_type(std::string_view name, TfType absent = {}) const;
    //! A shape whose rank is unknown when absent.
    TfShape get_shape(std::string_view name) const;
    std::vector<int64_t> get_ints(std::string_view name, std::vector<int64_t> absent = {}) const;
    std::vector<std::string> get_strings(std::string_view name, std::vector<std::string> absent = {}) const;
    std::vector<TfType> get_types(std::string_view name) const;
    //! The list; empty when absent.
    const TfList& get_list(std::string_view name) const;
    //! These throw when absent.
    const TfTensor& get_tensor(std::string_view name) const;
    const TfFunctionCall& get_function(std::string_view name) const;

    bool empty() const { return entries_.empty(); }
    size_t size() const { return entries_.size(); }
    auto begin() const { return entries_.begin(); }
    auto end() const { return entries_.end(); }

  private:
    std::vector<Entry> entries_;
};

//! A function named by an attribute, with attributes of its own.
struct TfFunctionCall {
    std::string name;
    TfAttributes attributes;
};

//! One input: "node", "node:2", "^node" (only after it), and in function bodies "node:argument:0".
struct TfInput {
    std::string node;
    int port = 0;
    bool control = false;
    std::string argument;  // in function bodies: which output argument `port` counts in

    TfInput() = default;
    //! Parses the text; throws Error when it is none of the forms.
    TfInput(std::string_view text);                                        // NOLINT: texts are inputs
    TfInput(const std::string& text) : TfInput(std::string_view(text)) {}  // NOLINT
    TfInput(const char* text) : TfInput(std::string_view(text)) {}         // NOLINT
    static TfInput of(std::string node, int port = 0);
    std::string text() const;
    bool operator==(const TfInput&) const = default;
};

struct TfNode {
    std::string name, op, device;
    std::vector<TfInput> inputs;  // data inputs first, then control inputs
    TfAttributes attributes;
    std::string foreign;  // serialized fields that kilter does not interpret

    //! How many inputs carry data; control inputs follow them.
    size_t data_inputs() const;
};

//! "node 'conv1' (Conv2D)": how every error names a node.
std::string describe(const TfNode& node);

//! An argument of a function: its name and how its type is given.
struct TfArgument {
    std::string name;
    TfType type;              // when it is fixed
    std::string type_attr;    // or the attribute that gives it
    std::string number_attr;  // the attribute that says how many tensors of the type it stands for
    std::string type_list_attr;
};

//! Functions are read-only: they are written as they were read.
struct TfFunction {
    std::string name;
    std::vector<TfArgument> inputs, outputs;
    std::vector<TfNode> nodes;
    std::vector<std::pair<std::string, std::string>> returns;  // output argument, "node:argument:port"
    Bytes source;                                              // the whole FunctionDef
};

class TfGraph {
  public:
    TfGraph() = default;
    TfGraph(TfGraph&&) noexcept = default;
    TfGraph& operator=(TfGraph&&) noexcept = default;
    //! A deep copy; tensors share their storage.
    TfGraph(const TfGraph& other);
    TfGraph& operator=(const TfGraph& other);

    //! In the order of the file. Pointers to nodes stay valid until they are removed.
    const std::vector<std::unique_ptr<TfNode>>& nodes() const { return nodes_; }
    size_t size() const { return nodes_.size(); }
    //! Null when there is none.
    TfNode* find(std::string_view name);
    const TfNode* find(std::string_view name) const;
    //! The node that an input reads.
    TfNode* producer(const TfInput& input) { return find(input.node); }
    const TfNode* producer(const TfInput& input) const { return find(input.node); }
    const TfFunction* find_function(std::string_view name) const;

    //! Throws Error when the name is empty or taken.
    TfNode& add(TfNode node);
    //! The common case; the result can be given further attributes.
    TfNode& add(std::string name, std::string op, std::vector<TfInput> inputs = {},
                TfAttributes attributes = {});
    TfNode& add_constant(std::string name, Tensor value);
    TfNode& add_constant(std::string name, TfTensor value);
    //! Readers must be gone or going too: `check` finds those that are left.
    void remove(std::span<const TfNode* const> nodes);
    //! All inputs that read `from` read `to` from now on; control inputs follow when `from` is the first output.
    void replace_uses(const TfInput& from, const TfInput& to);
    //! Nodes keep their place in the graph but not their name; readers follow.
    void rename(TfNode& node, std::string name);
    //! A name that no node has yet, starting with `stem`.
    std::string fresh_name(std::string_view stem) const;
    //! Nodes in an order in which inputs come first; what NextIteration feeds back does not count.
    //! Throws Error that names a node of a cycle.
    std::vector<TfNode*> sorted();
    std::vector<const TfNode*> sorted() const;
    //! Who reads each node: (reader, index of the input), by name of the node read. A snapshot.
    struct Use {
        TfNode* node;
        size_t index;
    };
    std::unordered_map<std::string, std::vector<Use>> uses();

    std::vector<TfFunction> functions;
    std::string library_foreign;  // gradients and other parts of the library
    bool has_library = false;     // there was one in the file, be it empty

    int64_t producer_version = 0;  // of the GraphDef format
    int64_t min_consumer = 0;
    std::vector<int64_t> bad_consumers;
    std::string foreign;  // serialized fields that kilter does not interpret
    std::string source;   // file it came from, for messages

  private:
    std::vector<std::unique_ptr<TfNode>> nodes_;
    std::unordered_map<std::string, TfNode*> by_name_;
};

//! Every input exists, data comes before control, and there is no cycle but through NextIteration. Throws Error.
void check(const TfGraph& graph);

//! The contents of the Const node that an input reads (through Identity); nothing when it is no constant.
std::optional<Tensor> constant_of(const TfGraph& graph, const TfInput& input);

}  // namespace kilter::tensorflow
