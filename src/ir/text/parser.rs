//! Parses text to models.

use rustc_hash::FxHashMap;

use super::lexer::{Lexer, ParseError, Token};
use super::literal::{self, Element};
use crate::ir::{
    Attribute, Constant, DeclaredDim, DeclaredType, DimClaim, Extra, Function, GraphId, Model, NamedAttribute, NewNode,
    OpsetImport, ValueId,
};
use crate::tensor::{DType, Tensor};

/// The largest nesting depth of graphs and types.
const MAX_DEPTH: usize = 32;

/// Parses a model and its functions.
///
/// # Errors
/// Contains the position where the text violates the syntax, or the reason why the model is invalid.
pub fn parse(text: &str) -> Result<Model, ParseError> {
    let mut parser = Parser::new(text)?;
    parser.model()?;
    let model = parser.model;
    model.verify().map_err(|broken| ParseError { line: 1, column: 1, reason: broken.to_string() })?;
    Ok(model)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    at: usize,
    token: Token,
    model: Model,
    scopes: Vec<FxHashMap<String, ValueId>>,
}

type Parsed<T> = Result<T, ParseError>;

/// A declared value of a graph: type, name, and content if it is an initializer.
struct Declared {
    ty: Option<DeclaredType>,
    name: String,
    content: Option<Tensor>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let (at, token) = lexer.next()?;
        Ok(Parser { lexer, at, token, model: Model::new(), scopes: Vec::new() })
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        Err(self.lexer.error(self.at, reason))
    }

    fn advance(&mut self) -> Parsed<Token> {
        let (at, token) = self.lexer.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token, Token::Sign(found) if found == sign)
    }

    fn take(&mut self, sign: &str) -> Parsed<bool> {
        let found = self.is(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign)? { Ok(()) } else { self.fail(format!("expected '{sign}', found {:?}", self.token)) }
    }

    /// Parses an identifier or a quoted name.
    fn name(&mut self) -> Parsed<String> {
        match self.advance()? {
            Token::Word(word) => Ok(word),
            Token::Quoted(bytes) => String::from_utf8(bytes).or_else(|_| self.fail("a name is not UTF-8")),
            other => self.fail(format!("expected a name, found {other:?}")),
        }
    }

    fn integer(&mut self) -> Parsed<i64> {
        match self.advance()? {
            Token::Number(text) => text.parse().or_else(|_| self.fail(format!("{text} is no 64-bit integer"))),
            other => self.fail(format!("expected an integer, found {other:?}")),
        }
    }

    /// Parses `item, item, …` up to and including `close`.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.take(close)? {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn opsets(&mut self) -> Parsed<Vec<OpsetImport>> {
        self.expect("[")?;
        self.list("]", |parser| {
            let domain = parser.name()?;
            parser.expect(":")?;
            Ok(OpsetImport { domain, version: parser.integer()?, extra: Extra::new() })
        })
    }

    fn model(&mut self) -> Parsed<()> {
        self.expect("<")?;
        self.list(">", |parser| {
            let key = parser.name()?;
            parser.expect(":")?;
            match key.as_str() {
                "ir_version" => parser.model.ir_version = parser.integer()?,
                "opset_import" => parser.model.opsets = parser.opsets()?,
                // Properties of the model as a whole are skipped.
                "producer_name" | "producer_version" | "domain" | "doc_string" => _ = parser.name()?,
                "model_version" => _ = parser.integer()?,
                "metadata_props" => {
                    parser.expect("[")?;
                    parser.list("]", |parser| {
                        parser.name()?;
                        parser.expect(":")?;
                        parser.name()
                    })?;
                }
                other => return parser.fail(format!("'{other}' of a model is not read from text")),
            }
            Ok(())
        })?;
        let main = self.model.main();
        self.graph(main, 0)?;
        while self.token != Token::End {
            self.function()?;
        }
        Ok(())
    }

    fn graph(&mut self, id: GraphId, depth: usize) -> Parsed<()> {
        if depth > MAX_DEPTH {
            return self.fail(format!("graphs are nested more than {MAX_DEPTH} deep"));
        }
        self.model.graph_mut(id).name = self.name()?;
        self.scopes.push(FxHashMap::default());
        self.expect("(")?;
        let inputs = self.list(")", Self::declared)?;
        self.expect("=>")?;
        self.expect("(")?;
        let outputs = self.list(")", Self::declared)?;
        let more = if self.take("<")? { self.list(">", Self::declared)? } else { Vec::new() };
        for input in inputs {
            let value = self.define(&input.name)?;
            self.model.add_input(id, value).or_else(|broken| self.fail(broken.to_string()))?;
            // The declared type of an input takes precedence over the type of its default.
            self.claim(value, input.ty.clone());
            self.describe(id, value, input)?;
        }
        let mut claims = Vec::new();
        for declared in more {
            if declared.content.is_some() {
                let known = self.scopes.last().and_then(|scope| scope.get(&declared.name)).copied();
                let value = known.map_or_else(|| self.define(&declared.name), Ok)?;
                self.describe(id, value, declared)?;
            } else {
                claims.push(declared);
            }
        }
        self.nodes(id, depth)?;
        for output in outputs {
            let value = self.operand(&output.name);
            self.claim(value, output.ty);
            self.model.add_output(id, value);
        }
        for declared in claims {
            let value = self.operand(&declared.name);
            self.claim(value, declared.ty);
        }
        self.scopes.pop();
        Ok(())
    }

    fn define(&mut self, name: &str) -> Parsed<ValueId> {
        let value = self.model.add_value(name);
        match self.scopes.last_mut().map(|scope| scope.insert(name.to_string(), value)) {
            Some(None) => Ok(value),
            // An earlier node may have read this result: then the value exists without a definition.
            Some(Some(earlier)) if self.model.value(earlier).definition() == crate::ir::Definition::Nothing => {
                if let Some(scope) = self.scopes.last_mut() {
                    scope.insert(name.to_string(), earlier);
                }
                Ok(earlier)
            }
            _ => self.fail(format!("'{name}' is defined twice")),
        }
    }

    fn operand(&mut self, name: &str) -> ValueId {
        if let Some(value) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            return *value;
        }
        let value = self.model.add_value(name);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_string(), value);
        }
        value
    }

    fn claim(&mut self, value: ValueId, ty: Option<DeclaredType>) {
        if self.model.value(value).declared.is_none() {
            self.model.value_mut(value).declared = ty;
        }
    }

    /// Gives a value its declared type or content.
    fn describe(&mut self, graph: GraphId, value: ValueId, declared: Declared) -> Parsed<()> {
        match declared.content {
            Some(tensor) => {
                let added = self.model.add_initializer(graph, value, Constant::dense(tensor));
                added.or_else(|broken| self.fail(broken.to_string()))
            }
            None => {
                self.claim(value, declared.ty);
                Ok(())
            }
        }
    }

    /// Parses `type name`, `type name = {…}` or `name`.
    fn declared(&mut self) -> Parsed<Declared> {
        let ty = if self.begins_type() { Some(self.ty(0)?) } else { None };
        let name = self.name()?;
        let content = if self.take("=")? { Some(self.content(ty.as_ref())?) } else { None };
        Ok(Declared { ty, name, content })
    }

    fn begins_type(&self) -> bool {
        let Token::Word(word) = &self.token else { return false };
        let kinds = ["seq", "optional", "map", "sparse_tensor"];
        DType::from_name(word).is_some() || kinds.contains(&word.as_str())
    }

    fn ty(&mut self, depth: usize) -> Parsed<DeclaredType> {
        if depth > MAX_DEPTH {
            return self.fail(format!("types are nested more than {MAX_DEPTH} deep"));
        }
        let word = self.name()?;
        let extra = Extra::new();
        if let Some(dtype) = DType::from_name(&word) {
            let shape = self.shape()?;
            return Ok(DeclaredType::Tensor { dtype: dtype.onnx(), shape, extra });
        }
        self.expect("(")?;
        let ty = match word.as_str() {
            "seq" => DeclaredType::Sequence { elem: Some(Box::new(self.ty(depth + 1)?)), extra },
            "optional" => DeclaredType::Optional { elem: Some(Box::new(self.ty(depth + 1)?)), extra },
            "sparse_tensor" => match self.ty(depth + 1)? {
                DeclaredType::Tensor { dtype, shape, extra } => DeclaredType::SparseTensor { dtype, shape, extra },
                _ => return self.fail("a sparse tensor is of a tensor type"),
            },
            "map" => {
                let key = self.ty(depth + 1)?.dtype().map_or(0, DType::onnx);
                self.expect(",")?;
                DeclaredType::Map { key, value: Some(Box::new(self.ty(depth + 1)?)), extra }
            }
            other => return self.fail(format!("'{other}' is no type")),
        };
        self.expect(")")?;
        Ok(ty)
    }

    /// Parses a shape: nothing for a scalar, `[]` for an unknown rank, `[N, 3, ?]` otherwise.
    fn shape(&mut self) -> Parsed<Option<Vec<DeclaredDim>>> {
        if !self.take("[")? {
            return Ok(Some(Vec::new()));
        }
        let dims = self.list("]", |parser| {
            let claim = if parser.take("?")? {
                DimClaim::Unknown
            } else if matches!(parser.token, Token::Number(_)) {
                // A negative dim is unknown.
                let size = parser.integer()?;
                if size < 0 { DimClaim::Unknown } else { DimClaim::Value(size) }
            } else {
                DimClaim::Param(parser.name()?)
            };
            Ok(DeclaredDim { claim, extra: Extra::new() })
        })?;
        Ok(if dims.is_empty() { None } else { Some(dims) })
    }

    fn content(&mut self, ty: Option<&DeclaredType>) -> Parsed<Tensor> {
        let Some((dtype, shape)) = ty.and_then(|ty| Some((ty.dtype()?, ty.shape()?))) else {
            return self.fail("content needs a tensor type with a shape");
        };
        let size = |dim: &DeclaredDim| match dim.claim {
            DimClaim::Value(size) => usize::try_from(size).ok(),
            _ => None,
        };
        let Some(shape) = shape.iter().map(size).collect::<Option<Vec<usize>>>() else {
            return self.fail("content needs a shape of numbers");
        };
        self.expect("{")?;
        let elements = self.list("}", |parser| match parser.advance()? {
            Token::Number(text) => Ok(Element::Number(text)),
            Token::Word(word) if word == "inf" || word == "nan" => Ok(Element::Number(word)),
            Token::Quoted(text) => Ok(Element::Text(text)),
            other => parser.fail(format!("expected an element, found {other:?}")),
        })?;
        literal::tensor(dtype, &shape, &elements).or_else(|reason| self.fail(reason))
    }

    fn nodes(&mut self, id: GraphId, depth: usize) -> Parsed<()> {
        self.expect("{")?;
        while !self.take("}")? {
            self.node(id, depth)?;
        }
        Ok(())
    }

    fn node(&mut self, graph: GraphId, depth: usize) -> Parsed<()> {
        let label = if self.take("[")? {
            let label = self.name()?;
            self.expect("]")?;
            label
        } else {
            String::new()
        };
        let mut results = Vec::new();
        if !self.is("=") {
            results.push(self.name()?);
            while self.take(",")? {
                results.push(self.name()?);
            }
        }
        self.expect("=")?;
        let mut parts = vec![self.name()?];
        while self.take(".")? {
            parts.push(self.name()?);
        }
        let op_type = parts.pop().unwrap_or_default();
        let overload = if self.take(":")? { self.name()? } else { String::new() };
        let mut attributes = Vec::new();
        if self.take("<")? {
            attributes = self.list(">", |parser| parser.attribute(depth))?;
        }
        self.expect("(")?;
        let operands = self.list(")", Self::name)?;
        if self.take("<")? {
            attributes.extend(self.list(">", |parser| parser.attribute(depth))?);
        }
        let inputs = operands.iter().map(|name| (!name.is_empty()).then(|| self.operand(name))).collect();
        let mut outputs = Vec::new();
        for name in &results {
            outputs.push(if name.is_empty() { None } else { Some(self.define(name)?) });
        }
        let node = NewNode {
            name: label.into(),
            domain: parts.join(".").into(),
            op_type: op_type.into(),
            overload: overload.into(),
            attributes,
            inputs,
            outputs,
            extra: Extra::new(),
        };
        self.model.add_node(graph, node).or_else(|broken| self.fail(broken.to_string()))?;
        Ok(())
    }

    /// Parses `name: kind = value`; without a kind, the form of the value decides.
    fn attribute(&mut self, depth: usize) -> Parsed<NamedAttribute> {
        let name = self.name()?;
        let kind = if self.take(":")? { Some(self.name()?) } else { None };
        self.expect("=")?;
        if self.take("@")? {
            let (reference, kind) = (self.name()?, kind.as_deref().map_or(0, super::printer::kind_number));
            return Ok(NamedAttribute::new(name, Attribute::Reference { name: reference, kind }));
        }
        let value = self.attribute_value(kind.as_deref(), depth)?;
        Ok(NamedAttribute::new(name, value))
    }

    fn attribute_value(&mut self, kind: Option<&str>, depth: usize) -> Parsed<Attribute> {
        match kind {
            Some("graph") => {
                let graph = self.model.add_graph("", None);
                self.graph(graph, depth + 1)?;
                return Ok(Attribute::Graph(graph));
            }
            Some("tensor") => return Ok(self.tensor()?.into()),
            Some("type_proto") => return Ok(Attribute::Type(self.ty(0)?)),
            _ => {}
        }
        if self.take("[")? {
            let items = self.list("]", |parser| parser.advance())?;
            return self.attribute_list(kind, items);
        }
        if self.begins_type() {
            return Ok(self.tensor()?.into());
        }
        match (kind, self.advance()?) {
            (Some("float"), Token::Number(text) | Token::Word(text)) => {
                text.parse().map(Attribute::Float).or_else(|_| self.fail(format!("{text} is no float")))
            }
            (Some("int") | None, Token::Number(text)) if text.parse::<i64>().is_ok() => {
                text.parse().map(Attribute::Int).or_else(|_| self.fail("no integer"))
            }
            (None, Token::Number(text)) => {
                text.parse().map(Attribute::Float).or_else(|_| self.fail(format!("{text} is no number")))
            }
            (Some("string") | None, Token::Quoted(text)) => Ok(Attribute::String(text.into())),
            (Some(kind), other) => self.fail(format!("{other:?} is no value of kind '{kind}'")),
            (None, other) => self.fail(format!("{other:?} is no attribute value")),
        }
    }

    fn attribute_list(&mut self, kind: Option<&str>, items: Vec<Token>) -> Parsed<Attribute> {
        let text = |token: &Token| match token {
            Token::Number(text) | Token::Word(text) => Some(text.clone()),
            _ => None,
        };
        let strings = items.iter().map(|item| match item {
            Token::Quoted(text) => Some(text.clone().into()),
            _ => None,
        });
        let ints = items.iter().map(|item| text(item).and_then(|text| text.parse::<i64>().ok()));
        let floats = items.iter().map(|item| text(item).and_then(|text| text.parse::<f32>().ok()));
        let read = match kind {
            Some("ints") => ints.collect::<Option<_>>().map(Attribute::Ints),
            Some("floats") => floats.collect::<Option<_>>().map(Attribute::Floats),
            Some("strings") => strings.collect::<Option<_>>().map(Attribute::Strings),
            None => (ints.collect::<Option<_>>().map(Attribute::Ints))
                .or_else(|| floats.collect::<Option<_>>().map(Attribute::Floats))
                .or_else(|| strings.collect::<Option<_>>().map(Attribute::Strings)),
            Some(_) => None,
        };
        match read {
            Some(value) => Ok(value),
            None => self.fail("the list does not fit the attribute's kind"),
        }
    }

    /// Parses `float[2] {1, 2}`, with an optional name before the elements.
    fn tensor(&mut self) -> Parsed<Tensor> {
        let ty = self.ty(0)?;
        if matches!(self.token, Token::Word(_) | Token::Quoted(_)) {
            self.name()?;
        }
        self.content(Some(&ty))
    }

    fn function(&mut self) -> Parsed<()> {
        let (mut domain, mut overload, mut opsets) = (String::new(), String::new(), Vec::new());
        self.expect("<")?;
        self.list(">", |parser| {
            let key = parser.name()?;
            parser.expect(":")?;
            match key.as_str() {
                "domain" => domain = parser.name()?,
                "overload" => overload = parser.name()?,
                "opset_import" => opsets = parser.opsets()?,
                other => return parser.fail(format!("'{other}' of a function is not read from text")),
            }
            Ok(())
        })?;
        let name = self.name()?;
        let (mut attributes, mut defaults) = (Vec::new(), Vec::new());
        if self.take("<")? {
            self.list(">", |parser| {
                let name = parser.name()?;
                if !parser.is(":") && !parser.is("=") {
                    attributes.push(name);
                    return Ok(());
                }
                let kind = if parser.take(":")? { Some(parser.name()?) } else { None };
                parser.expect("=")?;
                let value = parser.attribute_value(kind.as_deref(), 0)?;
                defaults.push(NamedAttribute::new(name, value));
                Ok(())
            })?;
        }
        let body = self.model.add_graph(&name, None);
        self.scopes.push(FxHashMap::default());
        self.expect("(")?;
        for input in self.list(")", Self::name)? {
            let value = self.define(&input)?;
            self.model.add_input(body, value).or_else(|broken| self.fail(broken.to_string()))?;
        }
        self.expect("=>")?;
        self.expect("(")?;
        let outputs = self.list(")", Self::name)?;
        self.nodes(body, 0)?;
        for output in outputs {
            let value = self.operand(&output);
            self.model.add_output(body, value);
        }
        self.scopes.pop();
        self.model.add_function(Function {
            name,
            domain,
            overload,
            body,
            attributes,
            defaults,
            opsets,
            extra: Extra::new(),
        });
        Ok(())
    }
}
