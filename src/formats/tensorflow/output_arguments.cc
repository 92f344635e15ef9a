#include "formats/tensorflow/output_arguments.h"

#include <unordered_map>

#include "base/fail.h"

namespace kilter::tensorflow {
namespace {

// Made by tools/tf_output_arguments.py: an operator, then its output arguments: NAME is one tensor, NAME#ATTRIBUTE as many as the
// attribute says, NAME*ATTRIBUTE as many as the attribute lists types.
constexpr std::string_view kTable = R"(
AllCandidateSampler sampled_candidates true_expected_count sampled_expected_count
AnonymousIteratorV2 handle deleter
AnonymousMemoryCache handle deleter
AnonymousMultiDeviceIterator handle deleter
AnonymousRandomSeedGenerator handle deleter
AnonymousSeedGenerator handle deleter
ApproxTopK values indices
BarrierTakeMany indices keys values*component_types
Batch batched_tensors*T batch_index id
BatchNormWithGlobalNormalizationGrad dx dm dv db dg
BatchSelfAdjointEigV2 e v
BatchSvd s u v
BlockLSTM i cs f o ci co h
BlockLSTMGrad x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad
BlockLSTMGradV2 x_grad cs_prev_grad h_prev_grad w_grad wci_grad wcf_grad wco_grad b_grad
BlockLSTMV2 i cs f o ci co h
BoostedTreesCalculateBestFeatureSplit node_ids gains feature_dimensions thresholds left_node_contribs right_node_contribs split_with_default_directions
BoostedTreesCalculateBestFeatureSplitV2 node_ids gains feature_ids feature_dimensions thresholds left_node_contribs right_node_contribs split_with_default_directions
BoostedTreesCalculateBestGainsPerFeature node_ids_list#num_features gains_list#num_features thresholds_list#num_features left_node_contribs_list#num_features right_node_contribs_list#num_features
BoostedTreesGetEnsembleStates stamp_token num_trees num_finalized_trees num_attempted_layers last_layer_nodes_range
BoostedTreesSerializeEnsemble stamp_token tree_ensemble_serialized
BoostedTreesSparseAggregateStats stats_summary_indices stats_summary_values stats_summary_shape
BoostedTreesSparseCalculateBestFeatureSplit node_ids gains feature_dimensions thresholds left_node_contribs right_node_contribs split_with_default_directions
BoostedTreesTrainingPredict partial_logits tree_ids node_ids
BroadcastGradientArgs r0 r1
CSRSparseMatrixComponents row_ptrs col_inds values
CSRSparseMatrixToSparseTensor indices values dense_shape
CTCBeamSearchDecoder decoded_indices#top_paths decoded_values#top_paths decoded_shape#top_paths log_probability
CTCGreedyDecoder decoded_indices decoded_values decoded_shape log_probability
CTCLoss loss gradient
CTCLossV2 loss gradient
CollectiveAssignGroupV2 group_size group_key
CombinedNonMaxSuppression nmsed_boxes nmsed_scores nmsed_classes valid_detections
ComputeAccidentalHits indices ids weights
ConvertToCooTensor row_ids col_ids gains
ConvertToListOfSparseCoreCooTensors row_ids_list#num_sc_per_chip col_ids_list#num_sc_per_chip gains_list#num_sc_per_chip
ConvertToSparseCoreCsrWrappedCooTensor row_pointers sorted_sample_ids sorted_token_ids sorted_gains row_pointers_unpadded_size ids_unpadded_size num_minibatches_per_sc
CudnnRNN output output_h output_c reserve_space
CudnnRNNBackprop input_backprop input_h_backprop input_c_backprop params_backprop
CudnnRNNBackpropV2 input_backprop input_h_backprop input_c_backprop params_backprop
CudnnRNNBackpropV3 input_backprop input_h_backprop input_c_backprop params_backprop
CudnnRNNParamsToCanonical weights#num_params biases#num_params
CudnnRNNParamsToCanonicalV2 weights#num_params_weights biases#num_params_biases
CudnnRNNV2 output output_h output_c reserve_space host_reserved
CudnnRNNV3 output output_h output_c reserve_space host_reserved
DecodeProtoV2 sizes values*output_types
DecodeWav audio sample_rate
DenseCountSparseOutput output_indices output_values output_dense_shape
DenseToDenseSetOperation result_indices result_values result_shape
DenseToSparseSetOperation result_indices result_values result_shape
DeserializeManySparse sparse_indices sparse_values sparse_shape
DeserializeSparse sparse_indices sparse_values sparse_shape
Eig e v
FakeQuantWithMinMaxVarsGradient backprops_wrt_input backprop_wrt_min backprop_wrt_max
FakeQuantWithMinMaxVarsPerChannelGradient backprops_wrt_input backprop_wrt_min backprop_wrt_max
FixedUnigramCandidateSampler sampled_candidates true_expected_count sampled_expected_count
FractionalAvgPool output row_pooling_sequence col_pooling_sequence
FractionalMaxPool output row_pooling_sequence col_pooling_sequence
FusedBatchNorm y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormGrad x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4
FusedBatchNormGradV2 x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4
FusedBatchNormGradV3 x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5
FusedBatchNormV2 y batch_mean batch_variance reserve_space_1 reserve_space_2
FusedBatchNormV3 y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3
GRUBlockCell r u c h
GRUBlockCellGrad d_x d_h_prev d_c_bar d_r_bar_u_bar
GenerateBoundingBoxProposals rois roi_probabilities
GenerateVocabRemapping remapping num_present
GetMinibatchSplitsWithPhysicalReplica sorted_row_ids sorted_col_ids sorted_gains splits id_counts max_ids max_uniques
GetMinibatchesInCsrWithPhysicalReplica row_pointers sorted_sample_ids sorted_token_ids sorted_gains row_pointers_unpadded_size ids_unpadded_size num_minibatches_per_physical_sparse_core
GetStatsFromListOfSparseCoreCooTensors max_ids_per_sparse_core max_unique_ids_per_sparse_core
IsotonicRegression output segments
LSTMBlockCell i cs f o ci co h
LSTMBlockCellGrad cs_prev_grad dicfo wci_grad wcf_grad wco_grad
LearnedUnigramCandidateSampler sampled_candidates true_expected_count sampled_expected_count
ListDiff out idx
LogMatrixDeterminant sign log_abs_determinant
LogUniformCandidateSampler sampled_candidates true_expected_count sampled_expected_count
LookupTableExport keys values
LookupTableExportV2 keys values
Lu lu p
MapUnstageNoKey key values*dtypes
MaxPoolWithArgmax output argmax
Merge output value_index
NearestNeighbors nearest_center_indices nearest_center_distances
NonMaxSuppressionV4 selected_indices valid_outputs
NonMaxSuppressionV5 selected_indices selected_scores valid_outputs
OrderedMapUnstageNoKey key values*dtypes
ParseExample sparse_indices#Nsparse sparse_values*sparse_types sparse_shapes#Nsparse dense_values*Tdense
ParseExampleV2 sparse_indices#num_sparse sparse_values*sparse_types sparse_shapes#num_sparse dense_values*Tdense ragged_values*ragged_value_types ragged_row_splits*ragged_split_types
ParseSequenceExample context_sparse_indices#Ncontext_sparse context_sparse_values*context_sparse_types context_sparse_shapes#Ncontext_sparse context_dense_values*Tcontext_dense feature_list_sparse_indices#Nfeature_list_sparse feature_list_sparse_values*feature_list_sparse_types feature_list_sparse_shapes#Nfeature_list_sparse feature_list_dense_values*feature_list_dense_types feature_list_dense_lengths#Nfeature_list_dense
ParseSequenceExampleV2 context_sparse_indices#Ncontext_sparse context_sparse_values*context_sparse_types context_sparse_shapes#Ncontext_sparse context_dense_values*Tcontext_dense context_ragged_values*context_ragged_value_types context_ragged_row_splits*context_ragged_split_types feature_list_sparse_indices#Nfeature_list_sparse feature_list_sparse_values*feature_list_sparse_types feature_list_sparse_shapes#Nfeature_list_sparse feature_list_dense_values*feature_list_dense_types feature_list_dense_lengths#Nfeature_list_dense feature_list_ragged_values*feature_list_ragged_value_types feature_list_ragged_outer_splits*feature_list_ragged_split_types feature_list_ragged_inner_splits*feature_list_ragged_split_types
ParseSingleExample sparse_indices#num_sparse sparse_values*sparse_types sparse_shapes#num_sparse dense_values*Tdense
ParseSingleSequenceExample context_sparse_indices#Ncontext_sparse context_sparse_values*context_sparse_types context_sparse_shapes#Ncontext_sparse context_dense_values*Tcontext_dense feature_list_sparse_indices#Nfeature_list_sparse feature_list_sparse_values*feature_list_sparse_types feature_list_sparse_shapes#Nfeature_list_sparse feature_list_dense_values*feature_list_dense_types
Qr q r
QuantizeAndDequantizeV4Grad input_backprop input_min_backprop input_max_backprop
QuantizeDownAndShrinkRange output output_min output_max
QuantizeV2 output output_min output_max
QuantizedAdd z min_z max_z
QuantizedAvgPool output min_output max_output
QuantizedBatchNormWithGlobalNormalization result result_min result_max
QuantizedBiasAdd output min_out max_out
QuantizedConcat output output_min output_max
QuantizedConv2D output min_output max_output
QuantizedConv2DAndRelu output min_output max_output
QuantizedConv2DAndReluAndRequantize output min_output max_output
QuantizedConv2DAndRequantize output min_output max_output
QuantizedConv2DPerChannel output min_output max_output
QuantizedConv2DWithBias output min_output max_output
QuantizedConv2DWithBiasAndRelu output min_output max_output
QuantizedConv2DWithBiasAndReluAndRequantize output min_output max_output
QuantizedConv2DWithBiasAndRequantize output min_output max_output
QuantizedConv2DWithBiasSignedSumAndReluAndRequantize output min_output max_output
QuantizedConv2DWithBiasSumAndRelu output min_output max_output
QuantizedConv2DWithBiasSumAndReluAndRequantize output min_output max_output
QuantizedDepthwiseConv2D output min_output max_output
QuantizedDepthwiseConv2DWithBias output min_output max_output
QuantizedDepthwiseConv2DWithBiasAndRelu output min_output max_output
QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize output min_output max_output
QuantizedInstanceNorm y y_min y_max
QuantizedMatMul out min_out max_out
QuantizedMatMulWithBias out min_out max_out
QuantizedMatMulWithBiasAndRelu out min_out max_out
QuantizedMatMulWithBiasAndReluAndRequantize out min_out max_out
QuantizedMatMulWithBiasAndRequantize out min_out max_out
QuantizedMaxPool output min_output max_output
QuantizedMul z min_z max_z
QuantizedRelu activations min_activations max_activations
QuantizedRelu6 activations min_activations max_activations
QuantizedReluX activations min_activations max_activations
QuantizedReshape output output_min output_max
QuantizedResizeBilinear resized_images out_min out_max
RaggedCountSparseOutput output_indices output_values output_dense_shape
RaggedCross output_values output_row_splits
RaggedFillEmptyRows output_value_rowids output_values empty_row_indicator reverse_index_map
RaggedFillEmptyRowsGrad d_values d_default_value
RaggedGather output_nested_splits#OUTPUT_RAGGED_RANK output_dense_values
RaggedRange rt_nested_splits rt_dense_values
RaggedTensorFromVariant output_nested_splits#output_ragged_rank output_dense_values
RaggedTensorToSparse sparse_indices sparse_values sparse_dense_shape
ReaderRead key value
ReaderReadUpTo keys values
ReaderReadUpToV2 keys values
ReaderReadV2 key value
RefMerge output value_index
RefSwitch output_false output_true
RequantizationRange output_min output_max
RequantizationRangePerChannel output_min output_max
Requantize output output_min output_max
RequantizePerChannel output output_min output_max
RetrieveTPUEmbeddingADAMParameters parameters momenta velocities
RetrieveTPUEmbeddingAdadeltaParameters parameters accumulators updates
RetrieveTPUEmbeddingAdagradMomentumParameters parameters accumulators momenta
RetrieveTPUEmbeddingAdagradParameters parameters accumulators
RetrieveTPUEmbeddingCenteredRMSPropParameters parameters ms mom mg
RetrieveTPUEmbeddingFTRLParameters parameters accumulators linears
RetrieveTPUEmbeddingFrequencyEstimatorParameters parameters last_hit_step
RetrieveTPUEmbeddingMDLAdagradLightParameters parameters accumulators weights benefits
RetrieveTPUEmbeddingMomentumParameters parameters momenta
RetrieveTPUEmbeddingProximalAdagradParameters parameters accumulators
RetrieveTPUEmbeddingProximalYogiParameters parameters v m
RetrieveTPUEmbeddingRMSPropParameters parameters ms mom
SampleDistortedBoundingBox begin size bboxes
SampleDistortedBoundingBoxV2 begin size bboxes
SdcaOptimizer out_example_state_data out_delta_sparse_weights#num_sparse_features out_delta_dense_weights#num_dense_features
SdcaOptimizerV2 out_example_state_data out_delta_sparse_weights#num_sparse_features out_delta_dense_weights#num_dense_features
SelfAdjointEigV2 e v
SoftmaxCrossEntropyWithLogits loss backprop
SortListOfSparseCoreCooTensors sorted_row_ids sorted_col_ids sorted_gains id_counts
SparseAccumulatorTakeGradient indices values shape
SparseAdd sum_indices sum_values sum_shape
SparseAddGrad a_val_grad b_val_grad
SparseConcat output_indices output_values output_shape
SparseCountSparseOutput output_indices output_values output_dense_shape
SparseCross output_indices output_values output_shape
SparseCrossHashed output_indices output_values output_shape
SparseCrossV2 output_indices output_values output_shape
SparseFillEmptyRows output_indices output_values empty_row_indicator reverse_index_map
SparseFillEmptyRowsGrad d_values d_default_value
SparseReduceMaxSparse output_indices output_values output_shape
SparseReduceSumSparse output_indices output_values output_shape
SparseReorder output_indices output_values
SparseReshape output_indices output_shape
SparseSegmentMeanGradV2 output sorted_unique_indices
SparseSegmentSqrtNGradV2 output sorted_unique_indices
SparseSegmentSumGradV2 output sorted_unique_indices
SparseSlice output_indices output_values output_shape
SparseSoftmaxCrossEntropyWithLogits loss backprop
SparseSparseMaximum output_indices output_values
SparseSparseMinimum output_indices output_values
SparseSplit output_indices#num_split output_values#num_split output_shape#num_split
SparseToSparseSetOperation result_indices result_values result_shape
StatelessRandomGetKeyCounter key counter
StatelessRandomGetKeyCounterAlg key counter alg
StatelessSampleDistortedBoundingBox begin size bboxes
StringNGrams ngrams ngrams_splits
StringSplit indices values shape
StringSplitV2 indices values shape
Svd s u v
Switch output_false output_true
TakeManySparseFromTensorsMap sparse_indices sparse_values sparse_shape
TensorArrayConcat value lengths
TensorArrayConcatV2 value lengths
TensorArrayConcatV3 value lengths
TensorArrayGradV3 grad_handle flow_out
TensorArrayGradWithShape grad_handle flow_out
TensorArrayV3 handle flow
TensorListConcat tensor lengths
TensorListConcatV2 tensor lengths
TensorListPopBack output_handle tensor
ThreadUnsafeUnigramCandidateSampler sampled_candidates true_expected_count sampled_expected_count
TopK values indices
TopKV2 values indices
UnicodeDecode row_splits char_values
UnicodeDecodeWithOffsets row_splits char_values char_to_byte_starts
UniformCandidateSampler sampled_candidates true_expected_count sampled_expected_count
Unique y idx
UniqueV2 y idx
UniqueWithCounts y idx count
UniqueWithCountsV2 y idx count
XlaSparseCoreAdagrad updated_embedding_table updated_accumulator
XlaSparseCoreAdagradMomentum updated_embedding_table updated_accumulator updated_momentum
XlaSparseCoreAdam updated_embedding_table updated_velocity updated_momentum
XlaSparseCoreFtrl updated_embedding_table updated_accumulator updated_linear
XlaSparseDenseMatmul activations row_pointers sorted_embedding_ids sorted_sample_ids sorted_gains
XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradAndCsrInput updated_embedding_table updated_accumulator updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdagradMomentumAndCsrInput updated_embedding_table updated_accumulator updated_momenta updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcGradWithAdamAndCsrInput updated_embedding_table updated_momenta updated_velocity updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcGradWithCsrInput updated_tables#N updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcGradWithFtrlAndCsrInput updated_embedding_table updated_accumulator updated_linear updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcGradWithSgdAndCsrInput updated_embedding_table updated_weights
XlaSparseDenseMatmulCustomCombinerOnTcWithCsrInput activations preserved_valencies preserved_vectors
XlaSparseDenseMatmulGradWithAdagradAndCsrInput updated_embedding_table updated_accumulator
XlaSparseDenseMatmulGradWithAdagradAndStaticBufferSize updated_embedding_table updated_accumulator
XlaSparseDenseMatmulGradWithAdagradMomentumAndCsrInput updated_embedding_table updated_accumulator updated_momenta
XlaSparseDenseMatmulGradWithAdagradMomentumAndStaticBufferSize updated_embedding_table updated_accumulator updated_momenta
XlaSparseDenseMatmulGradWithAdamAndCsrInput updated_embedding_table updated_momenta updated_velocity
XlaSparseDenseMatmulGradWithAdamAndStaticBufferSize updated_embedding_table updated_momenta updated_velocity
XlaSparseDenseMatmulGradWithFtrlAndCsrInput updated_embedding_table updated_accumulator updated_linear
XlaSparseDenseMatmulGradWithFtrlAndStaticBufferSize updated_embedding_table updated_accumulator updated_linear
)";

// The text up to `end`, which is cut off with it.
std::string_view cut(std::string_view& text, char end) {
    const size_t length = std::min(text.find(end), text.size());
    const std::string_view part = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return part;
}

const std::unordered_map<std::string_view, std::string_view>& table() {
    static const auto rows = [] {
        std::unordered_map<std::string_view, std::string_view> made;
        for (std::string_view text = kTable; !text.empty();) {
            std::string_view row = cut(text, '\n');
            const std::string_view op = cut(row, ' ');
            if (!op.empty()) made.emplace(op, row);
        }
        return made;
    }();
    return rows;
}

int tensor_count(const TfNode& node, std::string_view written) {
    if (const size_t mark = written.find('#'); mark != std::string_view::npos) {
        const int64_t count = node.attributes.get_int(written.substr(mark + 1));
        require(count >= 0 && count < (1 << 20), "'{}' stands for {} tensors", written.substr(0, mark),
                count);
        return static_cast<int>(count);
    }
    if (const size_t mark = written.find('*'); mark != std::string_view::npos)
        return static_cast<int>(node.attributes.get_types(written.substr(mark + 1)).size());
    return 1;
}

}  // namespace

int first_port(const TfNode& node, std::string_view argument) {
    const auto row = table().find(node.op);
    if (row == table().end()) return 0;
    int port = 0;
    for (std::string_view rest = row->second; !rest.empty();) {
        const std::string_view written = cut(rest, ' ');
        if (written.substr(0, written.find_first_of("#*")) == argument) return port;
        port += tensor_count(node, written);
    }
    fail("{} has no output '{}'", describe(node), argument);
}

}  // namespace kilter::tensorflow
