//! The index maps of data movement nodes.

use std::fmt::Write as _;

use super::super::Detail;
use super::{collapsed, name, section};
use crate::explain::MovementMap;

/// The number of maps that are initially visible.
const SHOWN: usize = 6;
/// The largest number of drawn maps.
const DRAWN: usize = 100;

pub(super) fn movement(page: &mut String, detail: &Detail) {
    section(page, "movement");
    let lists = [
        ("after folding", &detail.maps_after, SHOWN),
        ("before folding", &detail.maps_before, 0),
        ("of chains and trees that the rule movement merged", &detail.maps_merged, 0),
    ];
    if lists.iter().all(|(_, maps, _)| maps.is_empty()) {
        page.push_str("<p>No node with a known index map moves elements.</p></section>\n");
        return;
    }
    page.push_str("<p>An index map gives for each element of a result the element of an operand, or the constant. Bars are axes: those of the operands on the left, those of the result on the right. Lines connect axes that vary together. Filled parts are the elements that the node reads, in the result in the color of their operand; hatched parts of the result are constants. A dashed bar has a dynamic size, and shows the order of its parts, not their proportions.</p>\n");
    for (title, all, shown) in lists {
        let count = all.len();
        let maps = if count == 1 { "index map" } else { "index maps" };
        let drawn: Vec<&MovementMap> = all.iter().take(DRAWN).collect();
        let _ = writeln!(page, "<h3>{count} {maps} {title}</h3>");
        collapsed(page, &drawn, shown, "index maps", |page, all| all.iter().for_each(|map| picture(page, map)));
        if count > DRAWN {
            let _ = writeln!(page, "<p>{} more are not drawn.</p>", count - DRAWN);
        }
    }
    page.push_str("</section>\n");
}

fn picture(page: &mut String, map: &MovementMap) {
    let lines: Vec<String> = map.lines().iter().map(|line| name(line)).collect();
    let above: Vec<String> = map.above.iter().map(|node| name(node)).collect();
    let above = if above.is_empty() { String::new() } else { format!(" after {}", above.join(", ")) };
    let _ = writeln!(
        page,
        "<figure><figcaption><b>{}</b>{above}<br><code>{}</code><br>{}</figcaption>{}</figure>",
        name(&map.node),
        lines.join("<br>"),
        name(&map.legend()),
        map.svg()
    );
}
