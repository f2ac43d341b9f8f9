//! Parsed Rego, walked. One place knows the shape of the syntax tree; every match over it is exhaustive, so a construct that the
//! engine learns later does not compile here until somebody has decided what it means for the check and for the cache.

use regorus::{
    Source,
    unstable::{ArithOp, Expr, Literal, LiteralStmt, Module, Parser, Query, Ref, Rule, RuleAssign, RuleHead, Span},
};

/// One step of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A name that stands in the text: `.name` or `["name"]`.
    Name(String),
    /// An index that is computed.
    Any,
}

/// What stands at a place of the text.
pub(crate) trait Visit {
    /// A reference or a single variable: its root, the steps after it, and how many arguments where it is called.
    fn reference(&mut self, root: &str, steps: &[Step], arguments: Option<usize>, span: &Span);
    /// A name that a rule's body or arguments bring into being.
    fn local(&mut self, name: &str, span: &Span);
    /// A variable stands as an index, which can bind it.
    fn index(&mut self, name: &str);
    /// A text constant, escapes resolved.
    fn text(&mut self, text: &str, span: &Span);
    /// A function is called with these arguments; its name is told by [`Visit::reference`] too.
    fn call(&mut self, function: &Expr, arguments: &[Ref<Expr>]);
    /// A `with` modifier.
    fn with(&mut self, span: &Span);
    /// Two values are multiplied, neither of them a number in the text.
    fn product(&mut self, _span: &Span) {}
    /// An expression stands under `not`.
    fn not(&mut self, _expr: &Expr) {}
}

/// Parses a module.
///
/// # Errors
/// What the parser says: it names the file, the line and the column.
pub(crate) fn parse(name: &str, text: &str) -> Result<Module, String> {
    let parsed = || {
        let source = Source::from_contents(name.to_owned(), text.to_owned())?;
        let mut parser = Parser::new(&source)?;
        parser.enable_rego_v1()?;
        parser.parse()
    };
    let module = parsed();
    module.map_err(|error| error.to_string())
}

/// The byte where an expression begins. The engine's span of a call or of an operator has the place of what follows its first part, and
/// that of an object the place of its last member.
pub(crate) fn start(expr: &Expr) -> u32 {
    let first = match expr {
        Expr::Object { span, fields, .. } => {
            let first = fields.first().map_or(span.start, |(_, key, _)| start(key).min(span.start));
            let before = span.source.get_contents().get(..usize::try_from(first).unwrap_or(usize::MAX));
            let brace = before.and_then(|before| before.rfind('{')).and_then(|at| u32::try_from(at).ok());
            return brace.filter(|_| fields.len() > 1).unwrap_or(first.min(span.start));
        }
        Expr::Call { fcn, .. } => Some(fcn),
        Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => Some(refr),
        Expr::BinExpr { lhs, .. }
        | Expr::BoolExpr { lhs, .. }
        | Expr::ArithExpr { lhs, .. }
        | Expr::AssignExpr { lhs, .. } => Some(lhs),
        Expr::Membership { key, value, .. } => Some(key.as_ref().unwrap_or(value)),
        _ => None,
    };
    first.map_or(expr.span().start, |first| start(first).min(expr.span().start))
}

/// The line and the column, from 1, of a byte: columns are characters, where the engine counts a tab as four.
pub(crate) fn place(text: &str, start: u32) -> (u32, u32) {
    let before = text.get(..usize::try_from(start).unwrap_or(usize::MAX)).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// A reference taken apart: the root variable and the steps. `None` where it does not start at a variable.
pub(crate) fn path(expr: &Expr) -> Option<(&Span, Vec<Step>)> {
    let mut steps = Vec::new();
    let mut at = expr;
    loop {
        match at {
            Expr::Var { span, .. } => {
                steps.reverse();
                return Some((span, steps));
            }
            Expr::RefDot { refr, field, .. } => {
                steps.push(Step::Name(field.0.text().to_owned()));
                at = refr;
            }
            Expr::RefBrack { refr, index, .. } => {
                steps.push(match index.as_ref() {
                    Expr::String { value, .. } | Expr::RawString { value, .. } => {
                        value.as_string().map_or(Step::Any, |name| Step::Name(name.as_ref().to_owned()))
                    }
                    _ => Step::Any,
                });
                at = refr;
            }
            _ => return None,
        }
    }
}

/// The names of a reference from its start up to the first computed index.
pub(crate) fn names(expr: &Expr) -> Vec<String> {
    let Some((root, steps)) = path(expr) else { return Vec::new() };
    let rest = steps.into_iter().map_while(|step| match step {
        Step::Name(name) => Some(name),
        Step::Any => None,
    });
    std::iter::once(root.text().to_owned()).chain(rest).collect()
}

/// The reference in a rule's head, whether it is `default`, and whether it is a set that `contains` adds to.
pub(crate) fn head(rule: &Rule) -> (&Expr, HeadForm) {
    match rule {
        Rule::Default { refr, args, .. } if args.is_empty() => (refr, HeadForm::Default),
        Rule::Default { refr, .. } => (refr, HeadForm::Function),
        Rule::Spec { head: RuleHead::Compr { refr, .. }, .. } => (refr, HeadForm::Value),
        Rule::Spec { head: RuleHead::Set { refr, .. }, .. } => (refr, HeadForm::Set),
        Rule::Spec { head: RuleHead::Func { refr, .. }, .. } => (refr, HeadForm::Function),
    }
}

/// The form of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadForm {
    /// `default p := …`
    Default,
    /// `p := …`, `p[key] := …`
    Value,
    /// `p contains …`
    Set,
    /// `p(x) := …`
    Function,
}

/// Walks one rule: everything but the name in its head.
pub(crate) fn walk_rule(rule: &Rule, visit: &mut impl Visit) {
    match rule {
        Rule::Default { refr, args, value, .. } => {
            walk_indices(refr, visit);
            args.iter().for_each(|arg| walk_pattern(arg, visit));
            walk(value, visit);
        }
        Rule::Spec { head, bodies, .. } => {
            walk_head(head, visit);
            for body in bodies {
                walk_assign(body.assign.as_ref(), visit);
                walk_query(&body.query, visit);
            }
        }
    }
}

fn walk_head(head: &RuleHead, visit: &mut impl Visit) {
    match head {
        RuleHead::Compr { refr, assign, .. } => {
            walk_indices(refr, visit);
            walk_assign(assign.as_ref(), visit);
        }
        RuleHead::Set { refr, key, .. } => {
            walk_indices(refr, visit);
            walk_all(key.as_ref(), visit);
        }
        RuleHead::Func { refr, args, assign, .. } => {
            walk_indices(refr, visit);
            args.iter().for_each(|arg| walk_pattern(arg, visit));
            walk_assign(assign.as_ref(), visit);
        }
    }
}

fn walk_assign(assign: Option<&RuleAssign>, visit: &mut impl Visit) {
    if let Some(assign) = assign {
        walk(&assign.value, visit);
    }
}

fn walk_query(query: &Query, visit: &mut impl Visit) {
    query.stmts.iter().for_each(|statement| walk_statement(statement, visit));
}

fn walk_statement(LiteralStmt { literal, with_mods, .. }: &LiteralStmt, visit: &mut impl Visit) {
    match literal {
        Literal::SomeVars { vars, .. } => vars.iter().for_each(|name| visit.local(name.text(), name)),
        Literal::SomeIn { key, value, collection, .. } => {
            key.iter().chain([value]).for_each(|pattern| walk_pattern(pattern, visit));
            walk(collection, visit);
        }
        Literal::Expr { expr, .. } => walk(expr, visit),
        Literal::NotExpr { expr, .. } => {
            visit.not(expr);
            walk(expr, visit);
        }
        Literal::Every { key, value, domain, query, .. } => {
            key.iter().chain([value]).for_each(|name| visit.local(name.text(), name));
            walk(domain, visit);
            walk_query(query, visit);
        }
    }
    for with in with_mods {
        visit.with(&with.span);
        walk(&with.refr, visit);
        walk(&with.r#as, visit);
    }
}

/// A place that can bring variables into being: arguments, the left of `:=`, `some … in`.
fn walk_pattern(pattern: &Expr, visit: &mut impl Visit) {
    match pattern {
        Expr::Var { span, .. } => visit.local(span.text(), span),
        Expr::Array { items, .. } | Expr::Set { items, .. } => items.iter().for_each(|item| walk_pattern(item, visit)),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, key, value)| {
            walk(key, visit);
            walk_pattern(value, visit);
        }),
        other => walk(other, visit),
    }
}

/// Walks the computed indices of a reference, and whatever it starts at where that is not a variable.
fn walk_indices(expr: &Expr, visit: &mut impl Visit) {
    let mut at = expr;
    loop {
        match at {
            Expr::Var { .. } => return,
            Expr::RefDot { refr, .. } => at = refr,
            Expr::RefBrack { refr, index, .. } => {
                if let Expr::Var { span, .. } = index.as_ref() {
                    visit.index(span.text());
                }
                walk(index, visit);
                at = refr;
            }
            other => return walk(other, visit),
        }
    }
}

fn walk_all<'a>(exprs: impl IntoIterator<Item = &'a Ref<Expr>>, visit: &mut impl Visit) {
    exprs.into_iter().for_each(|expr| walk(expr, visit));
}

/// A number that stands in the text and is no larger than it looks.
fn is_short_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Number { span, .. } if span.text().len() <= 20 && !span.text().contains(['e', 'E']))
}

fn walk_call(fcn: &Expr, params: &[Ref<Expr>], span: &Span, visit: &mut impl Visit) {
    match path(fcn) {
        Some((root, steps)) => visit.reference(root.text(), &steps, Some(params.len()), root),
        None => visit.reference("", &[Step::Any], Some(params.len()), span),
    }
    visit.call(fcn, params);
    walk_indices(fcn, visit);
    walk_all(params, visit);
}

/// Walks an expression.
fn walk(expr: &Expr, visit: &mut impl Visit) {
    match expr {
        Expr::String { span, value, .. } | Expr::RawString { span, value, .. } => {
            if let Ok(text) = value.as_string() {
                visit.text(text, span);
            }
        }
        Expr::Number { .. } | Expr::Bool { .. } | Expr::Null { .. } => {}
        Expr::Var { span, .. } => visit.reference(span.text(), &[], None, span),
        Expr::RefDot { .. } | Expr::RefBrack { .. } => {
            if let Some((root, steps)) = path(expr) {
                visit.reference(root.text(), &steps, None, root);
            }
            walk_indices(expr, visit);
        }
        Expr::Call { fcn, params, span, .. } => walk_call(fcn, params, span, visit),
        Expr::Array { items, .. } | Expr::Set { items, .. } => walk_all(items, visit),
        Expr::Object { fields, .. } => fields.iter().for_each(|(_, key, value)| walk_all([key, value], visit)),
        Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
            walk(term, visit);
            walk_query(query, visit);
        }
        Expr::ObjectCompr { key, value, query, .. } => {
            walk_all([key, value], visit);
            walk_query(query, visit);
        }
        Expr::UnaryExpr { expr, .. } => walk(expr, visit),
        Expr::AssignExpr { op, lhs, rhs, .. } => {
            match op {
                regorus::unstable::AssignOp::ColEq => walk_pattern(lhs, visit),
                regorus::unstable::AssignOp::Eq => walk(lhs, visit),
            }
            walk(rhs, visit);
        }
        Expr::ArithExpr { op, lhs, rhs, span, .. } => {
            if matches!(op, ArithOp::Mul) && ![lhs, rhs].iter().any(|side| is_short_number(side)) {
                visit.product(span);
            }
            walk_all([lhs, rhs], visit);
        }
        Expr::BinExpr { lhs, rhs, .. } | Expr::BoolExpr { lhs, rhs, .. } => walk_all([lhs, rhs], visit),
        Expr::Membership { key, value, collection, .. } => walk_all(key.iter().chain([value, collection]), visit),
    }
}
