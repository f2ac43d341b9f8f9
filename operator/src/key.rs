//! The unit of work: one McpServer by its place, whether it exists or not.

use std::fmt;

use kube::{Resource, ResourceExt, runtime::reflector::ObjectRef};

/// A server's namespace and name. Not parsed: a pin can name a server whose name no object could have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ServerKey {
    /// A key from its parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The place of a namespaced object.
    pub fn of<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    /// The same place as the key of a reflector store.
    #[must_use]
    pub fn object<K: Resource<DynamicType = ()>>(&self) -> ObjectRef<K> {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
