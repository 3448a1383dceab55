//! Writing a model: as text, as bytes, to files and to sinks.

use super::OnnxModel;
use crate::error::Error;
use crate::ir::{self};
use crate::onnx::{self, ModelSink, SaveOptions, Saved};
use crate::report::{Drawing, Report, diff};
use std::path::Path;

impl OnnxModel {
    /// Lists the differences of another model from this one, a line each: `-` marks a part that only this model has, `+` a part that only the
    /// other has, `~` a part that has changed. Nodes are matched by the function they compute, not by name or place; subgraphs and functions are
    /// compared as graphs. Not compared are names of nodes and inner values, the order of nodes, documentation and metadata of nodes, tensors,
    /// subgraphs and functions, denotations, and the files that hold tensors.
    pub fn diff(&self, other: &OnnxModel) -> String {
        diff(&self.model, &other.model)
    }

    /// Returns the model in the ONNX text syntax.
    pub fn text(&self) -> String {
        ir::text::print(&self.model)
    }

    /// Returns the model in the ONNX text syntax as the standard's own parser reads it, with the types of results in comments on the lines
    /// of the nodes. Constants of more than a few elements are abbreviated to type and hash. With `full` the text has all data, and the
    /// types in a list as well. The parser then reads the whole model except for parts that the syntax cannot express: documentation of
    /// nodes and values, sparse constants, training information.
    pub fn parser_text(&self, full: bool) -> String {
        ir::text::print_for_parser(&self.model, &onnx::heading(&self.model), full)
    }

    /// Returns the model in the form of a drawing.
    pub fn drawing(&self) -> Drawing {
        Drawing::of(&self.model)
    }

    /// Returns the bytes of the model as a `ModelProto`, including the data of external files.
    ///
    /// # Errors
    /// If they are over the 2 GiB of a protobuf message, or a file the model came from changed meanwhile.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        self.whole()?;
        Ok(onnx::to_bytes(&self.model, self.source.as_ref())?)
    }

    /// Writes the model, whole or not at all: to a temporary file in the same directory, synced, then renamed. Returns the bytes
    /// of the file. The target may be the file the model was opened from.
    ///
    /// Tensors whose data lay in other files keep it there if `path` is in the same directory; in any other, it is copied to a
    /// file next to `path`. A model over the 2 GiB of a protobuf message gets such a file, too.
    ///
    /// # Errors
    /// If the target cannot be written, or a file the model came from changed meanwhile. The target is untouched then.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        Ok(self.save_with(path, &SaveOptions::new())?.model.bytes)
    }

    /// Saves with options that decide which tensors are in the file and which in a data file. Returns each written file;
    /// [`Report::note_saved`] accepts them.
    ///
    /// # Errors
    /// As [`save`](Self::save); and [`Usage`](crate::ErrorKind::Usage) if the output would refer to data in a place that it may not read.
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Saved, Error> {
        self.whole()?;
        Ok(onnx::store(&self.model, path.as_ref(), self.source.as_ref(), options)?)
    }

    /// Writes the model to a sink, which gets bytes and ranges of the sources that the model was [made from](Self::from_source). `name` is that of
    /// the model file, after which a data file is named.
    ///
    /// # Errors
    /// The sink fails, or a source cannot be read. The bytes that the sink has received are then useless.
    pub fn save_to(&self, name: &str, options: &SaveOptions, sink: &mut dyn ModelSink) -> Result<Saved, Error> {
        self.whole()?;
        Ok(onnx::store_to(&self.model, Path::new(name), self.source.as_ref(), options, sink)?)
    }
}

impl Report {
    /// Records the sizes of the written files.
    pub fn note_saved(&mut self, saved: &Saved) {
        self.bytes_after = Some(saved.model.bytes);
        self.external_bytes_after = Some(saved.external_bytes);
        self.files = [Some(&saved.model), saved.data.as_ref()]
            .into_iter()
            .flatten()
            .map(|file| (file.path.clone(), file.bytes))
            .collect();
    }
}
