//! Several programs in a row under one count of evaluations.

use super::Progress;
use std::ops::ControlFlow;

/// Runs programs one after the other, and stops all that follow when asked to stop one.
pub(super) struct Stages<'a> {
    progress: Progress<'a>,
    /// Evaluations so far.
    pub done: usize,
    pub stopped: bool,
}

impl<'a> Stages<'a> {
    pub(super) fn new(progress: Progress<'a>) -> Self {
        Self { progress, done: 0, stopped: false }
    }

    /// Runs the next program.
    pub(super) fn run<T>(&mut self, program: impl FnOnce(Progress<'_>) -> T) -> T {
        let before = self.done;
        program(&mut |iteration, gap| {
            self.done = before + iteration;
            self.stopped |= self.stopped || (self.progress)(self.done, gap).is_break();
            if self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stop_is_all() {
        let mut seen = Vec::new();
        let mut progress = |iteration, _| {
            seen.push(iteration);
            if iteration == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let mut stages = Stages::new(&mut progress);
        assert!(stages.run(|progress| progress(1, 1.0)).is_continue());
        assert!(stages.run(|progress| [progress(1, 1.0), progress(2, 1.0)])[1].is_break());
        assert!(stages.run(|progress| progress(1, 1.0)).is_break());
        assert_eq!((stages.done, seen), (4, vec![1, 2, 3]));
    }
}
