//! `gridrpc ca serve` and `gridrpc ca enroll`: certificates over the network.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;

use gridrpc_ca::{
    Authority, EnrolmentError, EnrolmentEvent, EnrolmentService, EnrolmentToken, enrol,
};
use gridrpc_transport::certificates::Utc;

/// Serves until a signal ends this process.
pub fn serve(authority: Authority, listen: SocketAddr) -> Result<String, EnrolmentError> {
    let folder = authority.folder().display().to_string();
    let service = EnrolmentService::bind(authority, listen)?;
    let address = service.address().map_err(EnrolmentError::Start)?;
    // Nobody need read it.
    let _ = writeln!(io::stdout(), "the authority in `{folder}` listens at {address}");
    let _ = io::stdout().flush();
    match service.run(|event| drop(writeln!(io::stderr(), "{}", describe(&event))))? {}
}

/// Makes the credentials of this user.
pub fn enroll(token: &str, user: Option<&str>, folder: &Path) -> Result<String, EnrolmentError> {
    let token: EnrolmentToken = token.parse()?;
    let enrolled = enrol(&token, user, folder)?;
    let groups = match enrolled.groups.is_empty() {
        true => String::new(),
        false => format!(" (groups: {})", enrolled.groups.join(", ")),
    };
    Ok(format!(
        "enrolled as `{}`{groups}, valid until {}\ninstalled `{}`\n",
        enrolled.user,
        Utc(enrolled.until),
        enrolled.files.certificate.display()
    ))
}

fn describe(event: &EnrolmentEvent) -> String {
    match event {
        EnrolmentEvent::Enrolled { address, issued } => {
            format!("{address}: certificate {} for {}", issued.serial, issued.name)
        }
        EnrolmentEvent::Refused { address, refusal, error } => {
            let error = error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
            format!("{address}: refused: {refusal}{error}")
        }
    }
}
