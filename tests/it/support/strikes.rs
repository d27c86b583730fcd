//! A process that dies at every single write, in every way in which one can fail.

use sierra_sync::store::Step;
use sierra_sync::sync::StoreError;

use super::library::Library;
use super::rig::Rig;

/// Plays `story` from `ready` on as often as it takes to have every write of `act` fail, each in every way; `goes_on`
/// then plays the rest, with a new process. Ends once `act` makes no further write, and demands that it made at least
/// `least`.
pub(crate) async fn struck_at_every_write<L: Library>(
    story: &str,
    least: u64,
    ready: impl AsyncFn() -> Rig<L>,
    act: impl AsyncFn(&mut Rig<L>) -> Result<(), StoreError>,
    goes_on: impl AsyncFn(&mut Rig<L>, &str),
) {
    for step in Step::OF_A_WRITE {
        for spared in 0.. {
            let context = format!("{story}: {step:?} after {spared} writes");
            let mut rig = ready().await;
            rig.store.fail_at(step, spared);
            let ended = act(&mut rig).await;
            rig.assert_sound();
            rig.crash();
            if ended.is_ok() {
                assert!(spared >= least, "{context}: no more of them were made");
                break;
            }
            goes_on(&mut rig, &context).await;
        }
    }
}
