//! Functions that calls can name.

use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_core::FunctionId;
use gridrpc_wire::FunctionForm;

use crate::loan::Source;

/// What workers are told of a function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) form: FunctionForm,
    /// Its pickle, or the file of its module; empty if the name is enough.
    pub(crate) body: Arc<Source>,
}

/// Numbers of functions that nobody holds any more; they are given out again.
pub(crate) type Unused = Arc<Mutex<Vec<FunctionId>>>;

/// A registered function. It stays known to the workers while this or a call of it lives.
#[derive(Debug)]
pub struct FunctionRef {
    id: FunctionId,
    name: String,
    form: FunctionForm,
    unused: Unused,
}

impl FunctionRef {
    pub(crate) fn new(
        id: FunctionId,
        name: String,
        form: FunctionForm,
        unused: Unused,
    ) -> Arc<FunctionRef> {
        Arc::new(FunctionRef { id, name, form, unused })
    }

    pub(crate) fn form(&self) -> FunctionForm {
        self.form
    }

    pub(crate) fn id(&self) -> FunctionId {
        self.id
    }

    /// Its name: `module/function`, or what people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for FunctionRef {
    fn drop(&mut self) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
    }
}
