// Small models of the repository that can be tried without a file.

const urls = import.meta.glob<string>("../../../models/*.onnx", { query: "?url", import: "default", eager: true });

const TEXTS: Record<string, [title: string, text: string]> = {
  focus_ts13d: ["YOLOv5 focus", "Strided slices and their shape arithmetic: the first layer of YOLOv5"],
  bert_dy18d: ["BERT encoder", "A dynamic export: Range, Expand and GatherND around an attention mask"],
  channel_shuffle_ts13d: ["Channel shuffle", "Shape, Slice and Concat chains that feed Reshape"],
  slice_zoo_ts13d: ["Slice zoo", "Slices of every kind in one model"],
  tf_masks_17d_custom: ["TensorFlow masks", "StridedSlice with begin, end, ellipsis, new-axis and shrink-axis masks"],
  lstm_last_ts14d: ["LSTM", "The last step of a recurrent layer"],
  scripted_loop_slice_ts16d: ["Scripted loop", "A Loop whose body slices its input"],
  tf_cond_slice_13d: ["Conditional slice", "An If from TensorFlow with a Slice in each branch"],
};

export interface Sample {
  id: string;
  title: string;
  text: string;
}

export const SAMPLES: readonly Sample[] = Object.entries(TEXTS).map(([id, [title, text]]) => ({ id, title, text }));

export async function sample(id: string): Promise<File> {
  const url = urls[`../../../models/${id}.onnx`];
  if (!url) throw new Error(`there is no sample model named ${id}`);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the sample model ${id} could not be loaded: ${response.status} ${response.statusText}`);
  return new File([await response.blob()], `${id}.onnx`);
}
