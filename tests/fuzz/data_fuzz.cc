// libFuzzer target: any bytes, read as a file of samples, end in an Error or in samples. The first byte says which kind of file.
#include <cstdlib>

#include "base/inflate.h"
#include "data/idx.h"
#include "data/image.h"
#include "data/image_records.h"
#include "data/records.h"
#include "kilter/base/error.h"

namespace {

using Bytes = std::span<const std::byte>;

// Every record on its own: one that is damaged must not keep the others from being read.
template <class Use>
void each_record(const kilter::RecordIndex& index, const Use& use) {
    for (const size_t offset : index.offsets) {
        try {
            use(offset);
        } catch (const kilter::Error&) {  // the right answer to a bad record
        }
    }
}

void read(char kind, Bytes bytes) {
    switch (kind) {
        case 'i':
            kilter::decode_image(bytes);
            return;
        case 't':
            each_record(kilter::index_tfrecord(bytes),
                        [&](size_t offset) { kilter::tfrecord_at(bytes, offset); });
            return;
        case 'e':
            kilter::parse_image_example(bytes);
            return;  // behind the checksums, which fuzzing does not get through
        case 'r':
            each_record(kilter::index_recordio(bytes), [&](size_t offset) {
                std::vector<std::byte> joined;
                kilter::parse_image_rec(kilter::recordio_at(bytes, offset, joined));
            });
            return;
        case 'x':
            kilter::parse_idx(bytes, nullptr);
            return;
        case 'g':
            kilter::gunzip(bytes, size_t{1} << 20);
            return;
        default:
            return;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    try {
        read(static_cast<char>(data[0]), {reinterpret_cast<const std::byte*>(data) + 1, size - 1});
    } catch (const kilter::Error&) {  // the right answer to a bad file
    }
    return 0;
}
