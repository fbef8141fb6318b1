//! Reserved workers of a client.

use std::collections::HashMap;
use std::sync::Arc;

use gridrpc_client::{Code, Grid, loss_on_the_wire};
use gridrpc_core::{Reservation, ReservationState};
use gridrpc_wire::{HostLoss, Message};

use crate::answers::Answers;
use crate::service::{Access, Permit};

/// A worker that the client has reserved.
#[derive(Debug)]
struct Reserved {
    /// None until the first call: which grid it belongs to depends on the function.
    reservation: Option<(Arc<Grid>, Reservation)>,
    /// Whether its readiness has been reported.
    is_reported: bool,
    _permit: Option<Box<dyn Permit>>,
}

/// The reserved workers of one client, by its numbers.
pub(super) struct Reservations {
    grid: Arc<Grid>,
    access: Option<Arc<dyn Access>>,
    answers: Arc<Answers>,
    workers: HashMap<u32, Reserved>,
}

impl Reservations {
    pub(super) fn new(
        grid: &Arc<Grid>,
        access: Option<Arc<dyn Access>>,
        answers: &Arc<Answers>,
    ) -> Reservations {
        let (grid, answers) = (Arc::clone(grid), Arc::clone(answers));
        Reservations { grid, access, answers, workers: HashMap::new() }
    }

    /// Reserves a worker.
    pub(super) fn reserve(&mut self, number: u32) {
        if self.access.is_some() && self.workers.contains_key(&number) {
            return;
        }
        let permit = self.access.as_ref().map(|access| access.reserve()).transpose();
        let permit = permit.map_err(|denied| denied.message);
        let reserved = permit.and_then(|permit| {
            let reservation = match permit {
                Some(_) => None,
                None => Some(reserve_on(&self.grid)?),
            };
            Ok(Reserved { reservation, is_reported: false, _permit: permit })
        });
        match reserved {
            Ok(mut reserved) => {
                if reserved.reservation.is_none() {
                    // It starts with the first call, so nothing else reports it.
                    reserved.is_reported = true;
                    self.answers.tell(&Message::Reserved { number, lost: None });
                }
                self.workers.insert(number, reserved);
            }
            Err(why) => {
                let why = &why;
                let lost = HostLoss { cause: HostLoss::FAILED, why, ..HostLoss::default() };
                self.answers.tell(&Message::Reserved { number, lost: Some(lost) });
            }
        }
    }

    /// Reports the state of reserved workers to the client.
    pub(super) fn report(&mut self) {
        let Reservations { answers, workers, .. } = self;
        workers.retain(|number, reserved| {
            let number = *number;
            let Some((grid, reservation)) = &reserved.reservation else { return true };
            match grid.standing(*reservation) {
                ReservationState::Starting => true,
                ReservationState::Ready => {
                    if !std::mem::replace(&mut reserved.is_reported, true) {
                        answers.tell(&Message::Reserved { number, lost: None });
                    }
                    true
                }
                ReservationState::Lost(loss) => {
                    let lost = Some(loss_on_the_wire(&loss));
                    answers.tell(&Message::Reserved { number, lost });
                    grid.release(*reservation);
                    false
                }
                ReservationState::Released => {
                    answers.tell(&Message::Reserved { number, lost: Some(given_up()) });
                    false
                }
            }
        });
    }

    /// The client's reserved worker, on the grid of the function that it calls there.
    pub(super) fn on(&mut self, number: u32, grid: &Arc<Grid>) -> Result<Reservation, String> {
        let reserved = self.workers.get_mut(&number).ok_or("its worker was given up")?;
        let (on, reservation) = match &mut reserved.reservation {
            Some(known) => known,
            none => none.insert(reserve_on(grid)?),
        };
        if Arc::ptr_eq(on, grid) {
            Ok(*reservation)
        } else {
            Err("its worker runs functions of another pool".to_owned())
        }
    }

    /// Releases a worker.
    pub(super) fn dismiss(&mut self, number: u32) {
        if let Some(reserved) = self.workers.remove(&number) {
            release(reserved.reservation);
        }
        self.answers.tell(&Message::Reserved { number, lost: Some(given_up()) });
    }

    /// Releases all workers.
    pub(super) fn release_all(&mut self) {
        for (_, reserved) in self.workers.drain() {
            release(reserved.reservation);
        }
    }
}

/// Reserves a worker of a grid.
fn reserve_on(grid: &Arc<Grid>) -> Result<(Arc<Grid>, Reservation), String> {
    let reserved = grid.reserve(1, None, Code::Python).map_err(|error| error.to_string())?;
    let one = reserved.first().ok_or("no worker can be reserved")?;
    Ok((Arc::clone(grid), *one))
}

fn release(reservation: Option<(Arc<Grid>, Reservation)>) {
    if let Some((grid, reservation)) = reservation {
        grid.release(reservation);
    }
}

fn given_up() -> HostLoss<'static> {
    HostLoss { cause: HostLoss::FAILED, why: "it was given up", ..HostLoss::default() }
}
