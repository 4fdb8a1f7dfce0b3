//! Bounds a flamegraph: pictures of a hundred thousand frames open in no
//! browser. Frames below a twentieth of a percent are too narrow to be seen;
//! when there are too many frames they become one `(smaller)` frame beside
//! their larger siblings, so that every total stands.

use std::collections::HashMap;

/// Frames that a picture holds without pruning.
pub const MOST_FRAMES: usize = 10_000;
/// Share of the whole below which a frame is pruned.
pub const SMALLEST_SHARE: f64 = 0.0005;
/// What pruned frames become.
pub const SMALLER: &str = "(smaller)";

/// Cuts `stacks` (root first, names and weight) where they get too narrow, if
/// they make more than `most` frames.
pub fn prune(stacks: &mut [(Vec<String>, f64)], most: usize, smallest_share: f64) {
    // A frame is its parent and its name; parents have smaller numbers.
    let mut frames: HashMap<(usize, &str), usize> = HashMap::new();
    let mut weights = vec![0.0];
    let mut paths = Vec::with_capacity(stacks.len());
    for (names, weight) in &*stacks {
        weights[0] += weight;
        let mut path = Vec::with_capacity(names.len());
        let mut at = 0;
        for name in names {
            let fresh = weights.len();
            at = *frames.entry((at, name)).or_insert(fresh);
            if at == fresh {
                weights.push(0.0);
            }
            weights[at] += weight;
            path.push(at);
        }
        paths.push(path);
    }
    if weights.len() <= most {
        return;
    }
    drop(frames);
    let smallest = weights[0] * smallest_share;
    for ((names, _), path) in stacks.iter_mut().zip(&paths) {
        if let Some(cut) = path.iter().position(|&frame| weights[frame] < smallest) {
            names.truncate(cut);
            names.push(SMALLER.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(names: &[&str], weight: f64) -> (Vec<String>, f64) {
        (names.iter().map(ToString::to_string).collect(), weight)
    }

    fn example() -> Vec<(Vec<String>, f64)> {
        vec![
            stack(&["a", "b"], 90.0),
            stack(&["a", "c", "d"], 6.0),
            stack(&["a", "c", "e"], 3.0),
            stack(&["f"], 1.0),
        ]
    }

    #[test]
    fn narrow_frames_become_one() {
        let mut stacks = example();
        prune(&mut stacks, 3, 0.05);
        assert_eq!(
            stacks,
            [
                stack(&["a", "b"], 90.0),
                stack(&["a", "c", "d"], 6.0),
                stack(&["a", "c", SMALLER], 3.0),
                stack(&[SMALLER], 1.0)
            ]
        );
    }

    #[test]
    fn few_frames_are_left_alone() {
        let mut stacks = example();
        prune(&mut stacks, 7, 0.05);
        assert_eq!(stacks, example());
    }
}
