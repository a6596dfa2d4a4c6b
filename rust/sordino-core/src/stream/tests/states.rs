//! States that say two things.

use super::*;
use crate::domain::Domain;
use crate::door::Key;
use crate::stream::Participation;
use crate::stream::machine::{Items, Stream};
use crate::stream::state::Writer;
use std::sync::Arc;

#[test]
fn a_process_with_tables_is_at_the_step_of_its_stream() {
    let varying = StreamMechanism::TimeVarying { degree: None };
    for mechanism in [StreamMechanism::TwoDiagonals, varying, StreamMechanism::Optimal] {
        let plan = Arc::new(plan(Filter::RunningSum, mechanism, GAUSS, Horizon::Hard(9), Objective::Max));
        let door = plan.fit(&[Participation::single()], Domain::integral(8).unwrap(), 1.0).unwrap();
        let mut stream = Stream::open_with(Arc::clone(&plan), door, 1, Key::deterministic([3; 32])).unwrap();
        stream.update(Items::Integers(&[1, 2, 3]), &mut [0.0; 3], None).unwrap();
        let mut state = Writer::default();
        stream.save(&mut state).unwrap();
        assert!(Stream::load(Arc::clone(&plan), door, 1, state.as_slice()).is_ok());
        // Behind the step, the coordinates, the position and the key.
        let place = 3 * 8 + 8 + 32;
        for other in [0u64, 2, 4, 9] {
            let mut bytes = state.as_slice().to_vec();
            assert_eq!(bytes[place..place + 8], 3u64.to_le_bytes());
            bytes[place..place + 8].copy_from_slice(&other.to_le_bytes());
            assert!(Stream::load(Arc::clone(&plan), door, 1, &bytes).is_err(), "{mechanism:?} {other}");
        }
    }
}
