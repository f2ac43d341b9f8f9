//! The reasons for a class, as a person is told them.

use serde::{Serialize, Serializer};

/// Which row of the table a change falls under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// Only what the effective form leaves out.
    Cosmetic,
    /// A description, at any level.
    Description,
    /// A title, an icon or an example.
    Prose,
    /// The order of an enum.
    Order,
    /// A new optional property.
    NewProperty,
    /// A new required property.
    NewRequired,
    /// A new property that can name a target.
    NewTarget,
    /// A property that is gone.
    PropertyRemoved,
    /// Optional became required.
    Required,
    /// Required became optional.
    Optional,
    /// An enum with more values.
    EnumGrew,
    /// An enum with fewer values.
    EnumShrank,
    /// An enum with other values, or one that was not there before, or is not there any more.
    EnumChanged,
    /// A bound that was added or tightened.
    BoundTightened,
    /// A bound that was removed or loosened.
    BoundLoosened,
    /// A type with more values.
    TypeWidened,
    /// A type with fewer values.
    TypeNarrowed,
    /// Another type.
    TypeChanged,
    /// Members beyond the named ones are let in.
    Opened,
    /// Members beyond the named ones are kept out.
    Closed,
    /// A constraint that was added to a result.
    ConstraintAdded,
    /// A constraint that was removed from a result.
    ConstraintRemoved,
    /// A schema of results where there was none.
    OutputAdded,
    /// No schema of results any more.
    OutputRemoved,
    /// A behaviour hint.
    Hint,
    /// A value that is filled in where the caller says nothing.
    Default,
    /// A pattern.
    Pattern,
    /// A change that the table does not name.
    NotNamed,
    /// `$schema` that names no known dialect.
    Dialect,
    /// A number that not every reader takes for the same one.
    UnsafeInteger,
    /// An object that cannot be hashed.
    NotHashable,
    /// A pointer to ignore that now leads into an array.
    IgnoresElement,
    /// More than is compared.
    TooMuch,
    /// The pin carries no definition to compare with.
    DefinitionUnknown,
    /// A description that was rewritten together with a schema.
    DescriptionWithSchema,
    /// Wider and narrower at once.
    BothDirections,
    /// The injection scan found something in what is new.
    Findings,
}

impl Why {
    /// One clause for a person.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Cosmetic => "neither a model nor a host acts on it",
            Self::Description => "description rewritten",
            Self::Prose => "title, icon or example changed",
            Self::Order => "order of an enum changed",
            Self::NewProperty => "new optional property",
            Self::NewRequired => "new required property",
            Self::NewTarget => "new property that can name a target",
            Self::PropertyRemoved => "property removed",
            Self::Required => "optional became required",
            Self::Optional => "required became optional",
            Self::EnumGrew => "enum value added",
            Self::EnumShrank => "enum value removed",
            Self::EnumChanged => "enum changed",
            Self::BoundTightened => "bound added or tightened",
            Self::BoundLoosened => "bound removed or loosened",
            Self::TypeWidened => "type widened",
            Self::TypeNarrowed => "type narrowed",
            Self::TypeChanged => "type changed",
            Self::Opened => "additional properties opened",
            Self::Closed => "additional properties closed",
            Self::ConstraintAdded => "constraint on the result added",
            Self::ConstraintRemoved => "constraint on the result removed",
            Self::OutputAdded => "schema of the result added",
            Self::OutputRemoved => "schema of the result removed",
            Self::Hint => "behaviour hint changed",
            Self::Default => "default value changed",
            Self::Pattern => "pattern changed",
            Self::NotNamed => "a change that no milder class names",
            Self::Dialect => "`$schema` names no known dialect, so it is text for a model",
            Self::UnsafeInteger => "a number beyond ±(2^53−1), where readers disagree",
            Self::NotHashable => "the object cannot be hashed",
            Self::IgnoresElement => "a pointer to ignore leads into an array",
            Self::TooMuch => "more than is compared member by member",
            Self::DefinitionUnknown => "the pin carries no definition to compare with",
            Self::DescriptionWithSchema => "description rewritten together with the schema",
            Self::BothDirections => "wider and narrower at once",
            Self::Findings => "the injection scan found something in what is new",
        }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}
