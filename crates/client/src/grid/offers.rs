//! Functions that servers of the grid offer.

use std::sync::Arc;

use gridrpc_wire::FunctionForm;

use crate::error::GridError;
use crate::function::FunctionRef;
use crate::grid::Grid;
use crate::server_catalogue::ServerCatalogue;
use crate::server_module::{Offer, ServerModule};

impl Grid {
    /// The catalogues of the servers of this grid.
    #[must_use]
    pub fn server_catalogues(&self) -> &[Arc<ServerCatalogue>] {
        &self.common.catalogues
    }

    /// Registers a function that a server of this grid offers. Its calls run there only. `member`: `function` or
    /// `Class.method`.
    ///
    /// # Errors
    /// When the grid has no such server.
    pub fn register_offered(
        &self,
        module: &Arc<ServerModule>,
        member: &str,
    ) -> Result<Arc<FunctionRef>, GridError> {
        let group = self.group(&module.server)?;
        let host = self.common.names.only_host(&module.server);
        let name = format!("{}/{member}", module.interface.name);
        let remote_name = Some(format!("{name}#{}", module.hash));
        let offer = Offer { module: Arc::clone(module), group, host };
        Ok(self.common.register_as(
            &name,
            remote_name,
            FunctionForm::Named,
            Vec::new(),
            Some(offer),
        ))
    }
}
