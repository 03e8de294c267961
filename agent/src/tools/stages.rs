//! In which order the calls of one answer run: what only looks runs side by side, what changes something alone.

use crate::turn::Call;

/// How many calls run at once.
const BESIDE_MAX: usize = 8;

/// The calls in stages that run one after another; those of one stage may run at once. The order is the model's.
pub(super) fn stages(calls: Vec<Call>, reads: impl Fn(&str) -> bool) -> Vec<Vec<Call>> {
    let mut stages: Vec<Vec<Call>> = Vec::new();
    let mut is_open = false;
    for call in calls {
        let may_join = reads(&call.name);
        match stages.last_mut() {
            Some(stage) if is_open && may_join && stage.len() < BESIDE_MAX => stage.push(call),
            _ => stages.push(vec![call]),
        }
        is_open = may_join;
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Input;
    use proptest::prelude::*;
    use serde_json::Map;

    fn calls(names: &str) -> Vec<Call> {
        let call =
            |name: char| Call { id: String::new(), name: name.to_string(), input: Input::Object(Map::new()) };
        names.chars().map(call).collect()
    }

    /// Capitals change something.
    fn staged(names: &str) -> Vec<String> {
        let reads = |name: &str| name.chars().all(char::is_lowercase);
        let together = |stage: Vec<Call>| stage.into_iter().map(|call| call.name).collect();
        stages(calls(names), reads).into_iter().map(together).collect()
    }

    #[test]
    fn what_changes_something_runs_alone() {
        assert_eq!(staged("abCdEF"), ["ab", "C", "d", "E", "F"]);
        assert_eq!(staged(""), [""; 0]);
        assert_eq!(staged("abcdefghi"), ["abcdefgh", "i"]);
    }

    proptest! {
        #[test]
        fn every_call_runs_once_and_in_order(names in "[a-cA-C]{0,40}") {
            let staged = staged(&names);
            prop_assert_eq!(staged.concat(), names);
            for stage in staged {
                prop_assert!(stage.len() == 1 || stage.chars().all(char::is_lowercase));
            }
        }
    }
}
