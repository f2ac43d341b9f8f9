//! How fingerprints and what belongs to them are described to readers of JSON Schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Digest, Fingerprint, Ignore, MAX_IGNORED, Scheme};
use crate::pointer::{MAX_BYTES, Pointer};

impl JsonSchema for Fingerprint {
    fn schema_name() -> Cow<'static, str> {
        "Fingerprint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": 128, "pattern": "^[a-z.+/0-9-]+:sha256:[0-9a-f]{64}$"})
    }
}

impl JsonSchema for Digest {
    fn schema_name() -> Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
    }
}

impl JsonSchema for Scheme {
    fn schema_name() -> Cow<'static, str> {
        "Scheme".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::ALL.map(Self::name)})
    }
}

impl JsonSchema for Pointer {
    fn schema_name() -> Cow<'static, str> {
        "Pointer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "maxLength": MAX_BYTES, "pattern": "^(/([^/~]|~[01])*)+$"})
    }
}

impl JsonSchema for Ignore {
    fn schema_name() -> Cow<'static, str> {
        "Ignore".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "maxItems": MAX_IGNORED, "items": generator.subschema_for::<Pointer>()})
    }
}
