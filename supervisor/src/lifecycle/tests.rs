use super::*;
use proptest::prelude::*;

fn policy() -> Policy {
    Policy::of(&ipc::config::Supervisor::default())
}

fn draining() -> Policy {
    Policy { drain_max: secs(30), ..policy() }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn exited(life: Life, code: i32) -> Event {
    Event::Exited { life, how: How::Code(code) }
}

fn died(life: Life, code: i32, restart_in: Option<Duration>) -> Action {
    Action::Tell(News::Died { life, how: How::Code(code), restart_in })
}

/// Runs events at given seconds, and checks what each one asks for.
fn check(steps: &[(u64, Event, Vec<Action>)]) -> Lifecycle {
    check_under(policy(), steps)
}

fn check_under(policy: Policy, steps: &[(u64, Event, Vec<Action>)]) -> Lifecycle {
    let start = Instant::now();
    let mut child = Lifecycle::new(policy, 1);
    for (at, event, expected) in steps {
        let said = child.on(event.clone(), start + secs(*at));
        let seen: Vec<_> = said.into_iter().filter(|action| !matches!(action, Action::Wake { .. })).collect();
        assert_eq!(&seen, expected, "at {at}: {event:?}, now {:?}", child.phase());
    }
    child
}

#[test]
fn it_starts_serves_and_ends_as_asked() {
    let child = check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (1, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(1) })]),
        (2, Event::Stop, vec![Action::Terminate { life: 1 }]),
        (3, Event::Stop, vec![]),
        (3, exited(1, 0), vec![Action::Tell(News::Stopped { life: Some(1), how: Some(How::Code(0)) })]),
    ]);
    assert_eq!((child.phase(), child.restarts()), (&Phase::Idle, 0));
}

#[test]
fn the_first_restart_is_at_once_whether_it_lived_long_or_not() {
    for lived in [1, 30] {
        check(&[
            (0, Event::Start, vec![Action::Spawn { life: 1 }]),
            (0, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(0) })]),
            (lived, exited(1, 0), vec![died(1, 0, Some(Duration::ZERO))]),
            (lived, Event::Clock, vec![Action::Spawn { life: 2 }]),
        ]);
    }
}

#[test]
fn b7_news_of_an_earlier_life_changes_nothing() {
    check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (1, exited(1, 1), vec![died(1, 1, Some(Duration::ZERO))]),
        (1, Event::Clock, vec![Action::Spawn { life: 2 }]),
        (1, exited(1, 1), vec![]),
        (1, Event::Ready { life: 1 }, vec![]),
        (1, Event::Ready { life: 2 }, vec![Action::Tell(News::Ready { life: 2, took: secs(0) })]),
        (2, exited(1, 9), vec![]),
    ]);
}

#[test]
fn b10_a_crash_loop_ends_parked_and_a_start_that_succeeds_does_not_reset_the_count() {
    let start = Instant::now();
    let mut child = Lifecycle::new(policy(), 1);
    let mut now = start;
    let mut lives = 0;
    let mut wakes = std::collections::BTreeSet::new();
    let mut todo = child.on(Event::Start, now);
    while !matches!(child.phase(), Phase::Parked { .. }) {
        match todo.pop() {
            Some(Action::Spawn { life }) => {
                lives = life;
                todo.extend(child.on(Event::Ready { life }, now));
                todo.extend(child.on(exited(life, 70), now));
            }
            Some(Action::Wake { at }) => drop(wakes.insert(at)),
            Some(
                Action::Tell(_)
                | Action::Terminate { .. }
                | Action::Kill { .. }
                | Action::Drain { .. }
                | Action::Trace { .. },
            ) => {}
            None => {
                now = wakes.pop_first().expect("it waits for something");
                todo.extend(child.on(Event::Clock, now));
            }
        }
        assert!(now < start + secs(5), "the pauses stay short while the count is low");
    }
    assert_eq!(lives, 6, "five deaths are borne, the sixth parks");
    assert!(
        matches!(child.phase(), Phase::Parked { why, .. } if why.contains("6 times")),
        "{:?}",
        child.phase()
    );
    assert_eq!(child.on(Event::Start, now), vec![]);
}

#[test]
fn t29_a_wrong_configuration_is_not_tried_again() {
    let child = check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (
            1,
            exited(1, 78),
            vec![
                died(1, 78, None),
                Action::Tell(News::Parked {
                    why: "it ended with exit code 78, which starting it again will not mend".into(),
                    retry_in: secs(300),
                }),
            ],
        ),
    ]);
    assert!(matches!(child.phase(), Phase::Parked { .. }));
}

#[test]
fn a_child_that_is_never_ready_or_never_ends_is_killed() {
    check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (19, Event::Clock, vec![]),
        (20, Event::Clock, vec![Action::Kill { life: 1 }]),
        (
            20,
            Event::Exited { life: 1, how: How::Signal(9) },
            vec![Action::Tell(News::Died { life: 1, how: How::Signal(9), restart_in: Some(Duration::ZERO) })],
        ),
        (20, Event::Clock, vec![Action::Spawn { life: 2 }]),
        (21, Event::Stop, vec![Action::Terminate { life: 2 }]),
        (25, Event::Clock, vec![]),
        (29, Event::Clock, vec![Action::Kill { life: 2 }]),
        (
            29,
            Event::Exited { life: 2, how: How::Signal(9) },
            vec![Action::Tell(News::Stopped { life: Some(2), how: Some(How::Signal(9)) })],
        ),
    ]);
}

#[test]
fn a_second_wish_to_end_shortens_what_is_left_and_never_lengthens_it() {
    let start = Instant::now();
    let mut child = Lifecycle::new(policy(), 1);
    child.on(Event::Start, start);
    child.on(Event::Stop, start);
    let soon = start + policy().haste_max;
    assert_eq!(child.on(Event::Hasten, start), vec![Action::Wake { at: soon }]);
    assert_eq!(child.on(Event::Stop, start + secs(0)), vec![], "asked again politely, the haste stands");
    assert_eq!(child.on(Event::Clock, soon), vec![Action::Kill { life: 1 }]);
    check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (1, Event::Hasten, vec![Action::Terminate { life: 1 }]),
        (2, Event::Clock, vec![Action::Kill { life: 1 }]),
    ]);
}

#[test]
fn new_settings_bring_a_new_life_that_is_no_death() {
    let gave_way = |life| Action::Tell(News::GaveWay { life, how: How::Code(0) });
    let renewing = |life| Action::Tell(News::Renewing { life, cut: 0 });
    let mut steps = vec![(0, Event::Start, vec![Action::Spawn { life: 1 }])];
    for life in 1..20 {
        steps.push((1, Event::Renew, vec![renewing(life), Action::Terminate { life }]));
        steps.push((1, Event::Renew, vec![]));
        steps.push((1, exited(life, 0), vec![gave_way(life), Action::Spawn { life: life + 1 }]));
    }
    // one that takes too long, and one that is to rest after all
    steps.push((2, Event::Renew, vec![renewing(20), Action::Terminate { life: 20 }]));
    steps.push((10, Event::Clock, vec![Action::Kill { life: 20 }]));
    steps.push((10, exited(20, 0), vec![gave_way(20), Action::Spawn { life: 21 }]));
    steps.push((11, Event::Renew, vec![renewing(21), Action::Terminate { life: 21 }]));
    steps.push((11, Event::Stop, vec![]));
    let stopped = News::Stopped { life: Some(21), how: Some(How::Code(0)) };
    steps.push((11, exited(21, 0), vec![Action::Tell(stopped)]));
    steps.push((11, Event::Renew, vec![]));
    check(&steps);
}

#[test]
fn work_in_hand_is_ended_before_a_renewal_and_not_waited_for_for_ever() {
    let start = [
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (0, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(0) })]),
        (
            1,
            Event::Renew,
            vec![
                Action::Tell(News::Draining { life: 1, patience: secs(30) }),
                Action::Drain { life: 1, patience: secs(30) },
            ],
        ),
        (2, Event::Renew, vec![]),
        (2, Event::Drained { life: 0, cut: 0 }, vec![]),
    ];
    let renewing = |cut| vec![Action::Tell(News::Renewing { life: 1, cut }), Action::Terminate { life: 1 }];
    let gave_way = Action::Tell(News::GaveWay { life: 1, how: How::Code(0) });
    let ends = |rest: &[(u64, Event, Vec<Action>)]| {
        check_under(draining(), &[&start[..], rest].concat());
    };
    ends(&[
        (5, Event::Drained { life: 1, cut: 0 }, renewing(0)),
        (5, Event::Drained { life: 1, cut: 0 }, vec![]),
        (6, exited(1, 0), vec![gave_way, Action::Spawn { life: 2 }]),
    ]);
    ends(&[(31, Event::Drained { life: 1, cut: 2 }, renewing(2))]);
    ends(&[(30, Event::Clock, vec![]), (33, Event::Clock, renewing(0))]);
    ends(&[(3, Event::Stop, vec![Action::Terminate { life: 1 }])]);
    ends(&[(3, exited(1, 1), vec![died(1, 1, Some(Duration::ZERO))])]);
    // one that is not ready yet has nothing in hand
    check_under(
        draining(),
        &[(0, Event::Start, vec![Action::Spawn { life: 1 }]), (1, Event::Renew, renewing(0))],
    );
}

#[test]
fn t29_new_settings_are_tried_by_a_child_that_was_given_up() {
    let mut child = check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (
            1,
            exited(1, 78),
            vec![
                died(1, 78, None),
                Action::Tell(News::Parked {
                    why: "it ended with exit code 78, which starting it again will not mend".into(),
                    retry_in: secs(300),
                }),
            ],
        ),
        (2, Event::Renew, vec![Action::Spawn { life: 2 }]),
    ]);
    let mut policy = policy();
    policy.deaths_max = 0;
    child.judge_by(policy);
    child.on(exited(2, 1), Instant::now());
    assert!(matches!(child.phase(), Phase::Parked { .. }), "the new policy judges: {:?}", child.phase());
}

#[test]
fn b10_a_child_that_is_never_ready_is_parked_by_the_defaults_too() {
    let start = Instant::now();
    let mut child = Lifecycle::new(policy(), 1);
    let mut now = start;
    child.on(Event::Start, now);
    let mut lives = 0;
    while !matches!(child.phase(), Phase::Parked { .. }) {
        now += policy().ready_max;
        for action in child.on(Event::Clock, now) {
            if let Action::Kill { life } = action {
                lives = life;
                child.on(Event::Exited { life, how: How::Signal(9) }, now);
                now += policy().pause_max * 2;
                child.on(Event::Clock, now);
            }
        }
        assert!(now < start + secs(600), "it goes on for ever: {:?}", child.phase());
    }
    assert_eq!(lives, 6, "five failures are borne");
    assert!(matches!(child.phase(), Phase::Parked { why, .. } if why.contains("never ready")));
}

#[test]
fn b10_a_parked_child_is_tried_again_slowly_and_a_stable_run_forgets_it() {
    let hopeless = "it ended with exit code 78, which starting it again will not mend";
    let parked = |life, how: &str, retry_in: u64| {
        vec![
            died(life, 78, None),
            Action::Tell(News::Parked { why: how.to_owned(), retry_in: secs(retry_in) }),
        ]
    };
    let mut steps = vec![(0, Event::Start, vec![Action::Spawn { life: 1 }])];
    let mut at = 0;
    for (life, retry_in) in [(1, 300), (2, 600), (3, 1200), (4, 2400), (5, 3600), (6, 3600)] {
        steps.push((at, exited(life, 78), parked(life, hopeless, retry_in)));
        steps.push((at + retry_in - 1, Event::Clock, vec![]));
        at += retry_in;
        steps.push((at, Event::Clock, vec![Action::Spawn { life: life + 1 }]));
    }
    // it is mended, serves for a while, and dies: an ordinary death
    steps.push((at, Event::Ready { life: 7 }, vec![Action::Tell(News::Ready { life: 7, took: secs(0) })]));
    steps.push((at + 60, exited(7, 1), vec![died(7, 1, Some(Duration::ZERO))]));
    check(&steps);
    // a try that dies before it was stable parks at once, whatever it died of
    check(&[
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (0, exited(1, 78), parked(1, hopeless, 300)),
        (300, Event::Clock, vec![Action::Spawn { life: 2 }]),
        (300, Event::Ready { life: 2 }, vec![Action::Tell(News::Ready { life: 2, took: secs(0) })]),
        (
            305,
            exited(2, 1),
            vec![
                died(2, 1, None),
                Action::Tell(News::Parked {
                    why: "it was tried again and died, by exit code 1".into(),
                    retry_in: secs(600),
                }),
            ],
        ),
    ]);
}

#[test]
fn a_child_that_hangs_says_where_it_stands_and_is_ended() {
    let ready = [
        (0, Event::Start, vec![Action::Spawn { life: 1 }]),
        (0, Event::Ready { life: 1 }, vec![Action::Tell(News::Ready { life: 1, took: secs(0) })]),
    ];
    let hung = vec![Action::Tell(News::Hung { life: 1, silence: secs(30) }), Action::Trace { life: 1 }];
    let silent = Event::Silent { life: 1, silence: secs(30) };
    let killed = Event::Exited { life: 1, how: How::Signal(9) };
    let death = Action::Tell(News::Died { life: 1, how: How::Signal(9), restart_in: Some(Duration::ZERO) });
    check(
        &[
            &ready[..],
            &[
                (40, Event::Silent { life: 0, silence: secs(30) }, vec![]),
                (40, silent.clone(), hung.clone()),
                (40, silent.clone(), vec![]),
                (41, Event::Renew, vec![]),
                (41, Event::Clock, vec![]),
                (42, Event::Clock, vec![Action::Kill { life: 1 }]),
                (42, killed.clone(), vec![death.clone()]),
            ],
        ]
        .concat(),
    );
    // the question itself ends it, or a person does
    check(&[&ready[..], &[(40, silent.clone(), hung.clone()), (40, killed, vec![death])]].concat());
    check(
        &[&ready[..], &[(40, silent, hung), (40, Event::Stop, vec![Action::Terminate { life: 1 }])]].concat(),
    );
}

proptest! {
    /// Whatever happens in whatever order: at most one life at a time, lives only grow, no action on a life that is over.
    #[test]
    fn two_lives_never_overlap(steps in proptest::collection::vec((0u8..10, 0u64..4, 0u64..30), 1..200)) {
        let start = Instant::now();
        let mut now = start;
        let mut child = Lifecycle::new(draining(), 7);
        let (mut alive, mut latest) = (None, 0);
        for (what, of, pause) in steps {
            now += secs(pause);
            let event = match what {
                0 => Event::Start,
                1 => Event::Ready { life: of },
                // only a process that is alive can end
                2 => match alive.take() {
                    Some(life) => Event::Exited { life, how: How::Code(1) },
                    None => Event::Exited { life: of.min(latest), how: How::Code(1) },
                },
                3 | 4 => Event::Clock,
                5 => Event::Renew,
                8 => Event::Drained { life: of, cut: 1 },
                9 => Event::Silent { life: of, silence: secs(30) },
                6 => Event::Hasten,
                _ => Event::Stop,
            };
            for action in child.on(event, now) {
                match action {
                    Action::Spawn { life } => {
                        prop_assert!(alive.is_none(), "spawned {life} while {alive:?} lives");
                        prop_assert!(life > latest);
                        (alive, latest) = (Some(life), life);
                    }
                    Action::Terminate { life } | Action::Kill { life } | Action::Drain { life, .. } | Action::Trace { life } => prop_assert_eq!(alive, Some(life)),
                    Action::Wake { at } => prop_assert!(at >= now),
                    Action::Tell(_) => {}
                }
            }
        }
    }
}
