#include "formats/tensorflow/bundle.h"

#include "base/fail.h"
#include "formats/protobuf/fields.h"
#include "formats/tensorflow/messages.h"

namespace kilter::tensorflow {
namespace {

using protobuf::Fields;

struct BundleHeader {
    enum : uint32_t { num_shards = 1, endianness = 2 };
};

struct BundleEntry {
    enum : uint32_t { dtype = 1, shape = 2, shard_id = 3, offset = 4, size = 5, slices = 7 };
};

// More files than anybody writes.
constexpr int64_t kMaxShards = 1 << 16;

}  // namespace

Bundle::Bundle(const std::filesystem::path& prefix) {
    const std::string index = prefix.string() + ".index";
    const auto file = MappedFile::open(index);
    int64_t shards = 1;
    try {
        entries_ =
            read_string_table({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
        const auto header = entries_.find("");
        require(header != entries_.end(), "the header is missing");
        for (Fields fields(header->second); fields.next();) {
            if (fields.number() == BundleHeader::num_shards)
                shards = fields.integer();
            else if (fields.number() == BundleHeader::endianness)
                require(fields.integer() == 0, "the variables are big-endian, which kilter does not read");
            else
                fields.skip();
        }
        require(shards >= 1 && shards <= kMaxShards, "{} files of variables", shards);
    } catch (const Error& error) {
        throw error.in(index);
    }
    for (int64_t shard = 0; shard < shards; ++shard)
        shards_.push_back(
            MappedFile::open(fmt::format("{}.data-{:05}-of-{:05}", prefix.string(), shard, shards)));
}

Tensor Bundle::read(const std::string& key) const {
    const auto found = entries_.find(key);
    require(found != entries_.end(), "there is no variable '{}'", key);
    TfType type;
    TfShape shape(std::vector<int64_t>{});
    int64_t shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    for (Fields fields(found->second); fields.next();) {
        switch (fields.number()) {
            case BundleEntry::dtype:
                type = {fields.integer()};
                break;
            case BundleEntry::shape:
                shape = read_shape(fields.view());
                break;
            case BundleEntry::shard_id:
                shard = fields.integer();
                break;
            case BundleEntry::offset:
                offset = fields.integer();
                break;
            case BundleEntry::size:
                size = fields.integer();
                break;
            case BundleEntry::slices:
                fail("variable '{}' is stored in slices, which kilter does not read", key);
            default:
                fields.skip();
        }
    }
    const DType dtype = type.dtype();
    require(dtype != DType::undefined && dtype != DType::string, "variable '{}' holds elements of {}", key,
            to_string(type));
    require(shape.dims.has_value(), "variable '{}' has no shape", key);
    require(shard >= 0 && static_cast<size_t>(shard) < shards_.size(), "variable '{}' is in file {} of {}",
            key, shard, shards_.size());
    const auto& file = shards_[static_cast<size_t>(shard)];
    const size_t needed = byte_count(dtype, element_count(*shape.dims));
    const size_t available = file->bytes().size();
    require(size >= 0 && static_cast<size_t>(size) == needed && offset >= 0 &&
                static_cast<size_t>(offset) <= available && needed <= available - static_cast<size_t>(offset),
            "variable '{}' needs {} bytes at {}, but the file has {}", key, needed, offset, available);
    return Tensor::mapped(dtype, *shape.dims, file->bytes().data() + offset, file);
}

}  // namespace kilter::tensorflow
