//! Where a function can go wrong: operators, rounding, ends, numbers, whole bodies.

use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Lit, ReturnType, Type, UnOp};

/// One mutant.
pub struct Site {
    /// What it is asked for by.
    pub number: u32,
    /// Line in the original, from 1.
    pub line: usize,
    /// The function that it is in.
    pub function: String,
    /// What was there.
    pub was: String,
    /// What stands there instead.
    pub becomes: String,
}

/// The source with its mutants, numbered from `next`: of these functions, if any are named. Those in `skipped` are counted
/// and left out.
pub fn mutated(source: &str, next: &mut u32, skipped: &[u32], functions: &[String]) -> (String, Vec<Site>) {
    let file = syn::parse_file(source).expect("a file of Rust");
    let mut visitor =
        Visitor { source, edits: Vec::new(), sites: Vec::new(), next, skipped, functions, function: Vec::new() };
    visitor.visit_file(&file);
    let Visitor { edits, sites, .. } = visitor;
    (rendered(source, 0..source.len(), &edits), sites)
}

type Edit = (Range<usize>, String);

/// A part of the source with the edits that lie in it.
fn rendered(source: &str, part: Range<usize>, edits: &[Edit]) -> String {
    let mut out = String::new();
    let mut at = part.start;
    for (range, text) in edits {
        if range.start >= part.start && range.end <= part.end {
            out.push_str(&source[at..range.start]);
            out.push_str(text);
            at = range.end;
        }
    }
    out + &source[at..part.end]
}

struct Visitor<'a> {
    source: &'a str,
    /// Of what was visited: disjoint, in order.
    edits: Vec<Edit>,
    sites: Vec<Site>,
    next: &'a mut u32,
    skipped: &'a [u32],
    functions: &'a [String],
    function: Vec<String>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::NameValue(_) => false,
    })
}

/// What may stand in the place of a binary operator.
fn others(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) | BinOp::BitXor(_) => &["&"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["+="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) | BinOp::BitXorAssign(_) => &["&="],
        _ => &[],
    }
}

/// What a call may be in the place of: with as many arguments, or none of it.
fn other_method(name: &str, arguments: usize) -> Option<&'static str> {
    Some(match (name, arguments) {
        ("max", 0 | 1) => "min",
        ("min", 0 | 1) => "max",
        ("ceil", 0) => "floor",
        ("floor", 0) => "ceil",
        ("any", 1) => "all",
        ("all", 1) => "any",
        ("first", 0) => "last",
        ("is_some", 0) => "is_none",
        ("is_none", 0) => "is_some",
        ("is_ok", 0) => "is_err",
        ("leading_zeros", 0) => "trailing_zeros",
        ("trailing_zeros", 0) => "leading_zeros",
        ("next_up" | "sqrt" | "abs" | "round" | "rev", 0) | ("clamp", 2) => "",
        _ => return None,
    })
}

/// Values that a function of this type may return at once.
fn returns(output: &ReturnType) -> Vec<&'static str> {
    fn of(ty: &Type) -> Vec<String> {
        let Type::Path(path) = ty else { return Vec::new() };
        let Some(last) = path.path.segments.last() else { return Vec::new() };
        let inner = || match &last.arguments {
            syn::PathArguments::AngleBracketed(inside) => inside.args.iter().find_map(|argument| match argument {
                syn::GenericArgument::Type(ty) => Some(ty.clone()),
                _ => None,
            }),
            _ => None,
        };
        let some = |values: Vec<String>, wrap: &str| values.into_iter().map(|v| format!("{wrap}({v})")).collect();
        match last.ident.to_string().as_str() {
            "bool" => vec!["true".into(), "false".into()],
            "f64" => vec!["0.0".into(), "1.0".into()],
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i16" | "i32" | "i64" | "i128" => {
                vec!["0".into(), "1".into()]
            }
            "Upper" => vec!["crate::upper::Upper::ZERO".into()],
            "Vec" => vec!["Vec::new()".into()],
            "Option" => vec!["None".into()],
            "Result" => match inner() {
                Some(Type::Tuple(tuple)) if tuple.elems.is_empty() => vec!["Ok(())".into()],
                Some(ty) => some(of(&ty), "Ok"),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
    let values = match output {
        ReturnType::Default => vec!["()".to_string()],
        ReturnType::Type(_, ty) => of(ty),
    };
    values.into_iter().map(|value| &*Box::leak(value.into_boxed_str())).collect()
}

fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

impl Visitor<'_> {
    /// A mutant at a place, None if it is skipped.
    fn site(&mut self, span: Span, was: &str, becomes: &str) -> Option<u32> {
        let wanted = |name: &String| self.functions.contains(name);
        if !self.functions.is_empty() && !self.function.iter().any(wanted) {
            return None;
        }
        let number = *self.next;
        *self.next += 1;
        if self.skipped.contains(&number) {
            return None;
        }
        let (line, function) = (span.start().line, self.function.join("::"));
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.sites.push(Site { number, line, function, was: flat(was), becomes: flat(becomes) });
        Some(number)
    }

    fn text(&self, span: Span, since: usize) -> String {
        rendered(self.source, span.byte_range(), &self.edits[since..])
    }

    fn put(&mut self, span: Span, since: usize, text: String) {
        self.edits.truncate(since);
        self.edits.push((span.byte_range(), text));
    }

    fn original(&self, span: Span) -> String {
        self.source[span.byte_range()].to_string()
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block, visit: impl FnOnce(&mut Self)) {
        if signature.constness.is_some() {
            return;
        }
        self.function.push(signature.ident.to_string());
        let place = block.brace_token.span.open().byte_range().end;
        let early = if block.stmts.is_empty() { Vec::new() } else { returns(&signature.output) };
        for value in early {
            if let Some(number) = self.site(signature.ident.span(), "the body", &format!("return {value}")) {
                let text = format!(" if crate::mutants::is({number}) {{ return {value}; }} ");
                self.edits.push((place..place, text));
            }
        }
        visit(self);
        self.function.pop();
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            self.body(&item.sig, &item.block, |own| own.visit_block(&item.block));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.body(&item.sig, &item.block, |own| own.visit_block(&item.block));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(&item.sig, block, |own| own.visit_block(block));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let shown = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if is_test(&item.attrs) || shown.is_some_and(|name| name.ident == "Debug") {
            return;
        }
        let name = self.original(item.self_ty.span());
        self.function.push(name);
        visit::visit_item_impl(self, item);
        self.function.pop();
    }

    // Constants of types and patterns are computed before anybody can ask.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            let since = self.edits.len();
            self.visit_expr(guard);
            if !has_let(guard) {
                let was = self.original(guard.span());
                let own = self.text(guard.span(), since);
                let always = self.site(guard.span(), &was, "true").map(|n| format!("crate::mutants::is({n}) || "));
                let never = self.site(guard.span(), &was, "false").map(|n| format!("!crate::mutants::is({n}) && "));
                let text = format!("{}({}({own}))", always.unwrap_or_default(), never.unwrap_or_default());
                self.put(guard.span(), since, text);
            }
        }
        self.visit_expr(&arm.body);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        let since = self.edits.len();
        visit::visit_expr(self, expr);
        match expr {
            Expr::Binary(binary) => self.binary(binary, since),
            Expr::Unary(unary) => {
                let op = match unary.op {
                    UnOp::Neg(_) => "-",
                    UnOp::Not(_) => "!",
                    _ => return,
                };
                if matches!(&*unary.expr, Expr::Lit(_)) {
                    return;
                }
                let inner = self.text(unary.expr.span(), since);
                let was = self.original(expr.span());
                let bare = self.original(unary.expr.span());
                if let Some(n) = self.site(expr.span(), &was, &bare) {
                    let text =
                        format!("(match {inner} {{ v => if crate::mutants::is({n}) {{ v }} else {{ {op}v }} }})");
                    self.put(expr.span(), since, text);
                }
            }
            Expr::MethodCall(call) => self.call(call, since),
            Expr::Lit(literal) => self.literal(literal, since),
            Expr::Range(range) => {
                if let (Some(start), Some(end), syn::RangeLimits::Closed(_)) = (&range.start, &range.end, &range.limits)
                {
                    let (a, b) = (self.text(start.span(), since), self.text(end.span(), since));
                    let was = self.original(expr.span());
                    if let Some(n) = self.site(expr.span(), &was, "without its end") {
                        let text =
                            format!("{a}..=(match {b} {{ v => if crate::mutants::is({n}) {{ v - 1 }} else {{ v }} }})");
                        self.put(expr.span(), since, text);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Visitor<'_> {
    fn binary(&mut self, binary: &syn::ExprBinary, since: usize) {
        if has_let(&binary.left) || has_let(&binary.right) {
            return;
        }
        let whole = Spanned::span(binary);
        let op = self.original(binary.op.span());
        let was = self.original(whole);
        let (left, right) = (self.text(binary.left.span(), since), self.text(binary.right.span(), since));
        if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) {
            let other = if op == "&&" { "||" } else { "&&" };
            if let Some(n) = self.site(whole, &was, &format!("… {other} …")) {
                // By De Morgan, so that each side is there once.
                let m = format!("crate::mutants::is({n})");
                self.put(whole, since, format!("((({m}) ^ ((({m}) ^ ({left})) {op} (({m}) ^ ({right})))))"));
            }
            return;
        }
        let others = others(&binary.op);
        let numbers: Vec<(u32, &str)> = others
            .iter()
            .filter_map(|other| Some((self.site(whole, &was, &format!("… {other} …"))?, *other)))
            .collect();
        if numbers.is_empty() {
            return;
        }
        let compared = matches!(op.as_str(), "==" | "!=" | "<" | "<=" | ">" | ">=");
        let assigned = op.ends_with('=') && !compared;
        let (l, r) = if assigned { (left.as_str(), "r") } else { ("l", "r") };
        let mut body = String::new();
        for (n, other) in &numbers {
            body += &format!("if crate::mutants::is({n}) {{ {l} {other} {r} }} else ");
        }
        body += &format!("{{ {l} {op} {r} }}");
        let text = match (assigned, compared) {
            (true, _) => format!("(match {right} {{ r => {body} }})"),
            (_, true) => format!("(match (&({left}), &({right})) {{ (l, r) => {body} }})"),
            _ => format!("(match ({left}, {right}) {{ (l, r) => {body} }})"),
        };
        self.put(whole, since, text);
    }

    fn call(&mut self, call: &syn::ExprMethodCall, since: usize) {
        let name = call.method.to_string();
        let Some(other) = other_method(&name, call.args.len()) else { return };
        if call.turbofish.is_some() {
            return;
        }
        let whole = Spanned::span(call);
        let was = self.original(whole);
        let becomes = if other.is_empty() { format!("without .{name}") } else { format!(".{other}") };
        let receiver = self.text(call.receiver.span(), since);
        let arguments: Vec<String> = call.args.iter().map(|argument| self.text(argument.span(), since)).collect();
        let Some(n) = self.site(whole, &was, &becomes) else { return };
        let names: Vec<String> = (0..arguments.len()).map(|i| format!("a{i}")).collect();
        let passed = names.join(", ");
        let mutant = if other.is_empty() { "v".to_string() } else { format!("v.{other}({passed})") };
        let text = format!(
            "(match ({receiver}, {}) {{ (v, {}) => if crate::mutants::is({n}) {{ {mutant} }} else {{ v.{name}({passed}) }} }})",
            arguments.join(", "),
            names.join(", "),
        )
        .replace(", )", ",)");
        self.put(whole, since, text);
    }

    fn literal(&mut self, literal: &syn::ExprLit, since: usize) {
        let whole = Spanned::span(literal);
        let was = self.original(whole);
        let becomes = match &literal.lit {
            Lit::Int(number) => {
                let Ok(value) = number.base10_parse::<u128>() else { return };
                format!("{}{}", value + 1, number.suffix())
            }
            Lit::Float(number) => {
                let Ok(value) = number.base10_parse::<f64>() else { return };
                format!("{:?}{}", if value == 0.0 { 1.0 } else { value * 0.75 }, number.suffix())
            }
            _ => return,
        };
        if let Some(n) = self.site(whole, &was, &becomes) {
            self.put(whole, since, format!("(if crate::mutants::is({n}) {{ {becomes} }} else {{ {was} }})"));
        }
    }
}
