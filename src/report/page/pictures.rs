//! Draws the elements that each Slice selects from each axis.

use std::fmt::Write as _;

use super::super::table::cut;
use super::super::{AxisTaken, Detail, SliceTaken, Span};
use super::{collapsed, escaped, name, section};

/// The number of Slices that are shown at once.
const SHOWN: usize = 6;
/// The largest number of drawn Slices.
const DRAWN: usize = 200;
/// The largest number of characters of a size that are shown at once.
const LONG: usize = 60;

pub(super) fn slices(page: &mut String, detail: &Detail) {
    section(page, "slices");
    if detail.slices_before.is_empty() && detail.slices_after.is_empty() {
        page.push_str("<p>The model has no Slice with known axes.</p></section>\n");
        return;
    }
    page.push_str("<p>Each bar is an axis, and its filled part shows the elements that the Slice selects. Bars with a solid filling are to scale. In a hatched bar, the proportions depend on dynamic dims, so it only shows on which sides elements may be omitted.</p>\n");
    for (title, all) in [("after", &detail.slices_after), ("before", &detail.slices_before)] {
        let count = all.len();
        let slices = if count == 1 { "Slice" } else { "Slices" };
        let drawn: Vec<&SliceTaken> = all.iter().take(DRAWN).collect();
        let _ = writeln!(page, "<h3>{count} {slices} {title} folding</h3>");
        let shown = if title == "after" { SHOWN } else { 0 };
        collapsed(page, &drawn, shown, "Slices", |page, all| all.iter().for_each(|slice| picture(page, slice)));
        if count > DRAWN {
            let _ = writeln!(page, "<p>{} more are not drawn.</p>", count - DRAWN);
        }
    }
    page.push_str("</section>\n");
}

fn picture(page: &mut String, slice: &SliceTaken) {
    let caption = |most: usize| {
        let axes = slice.axes.iter().enumerate().map(|(at, axis)| described(at, axis, most));
        axes.collect::<Vec<_>>().join("; ")
    };
    let (short, full) = (caption(LONG), caption(usize::MAX));
    let _ = write!(
        page,
        "<figure class=\"slice\"><figcaption><b>{}</b> of <code>{}</code>: {}</figcaption><div role=\"img\" aria-label=\"{}\">",
        name(&slice.node),
        name(&slice.data),
        name(&short),
        escaped(&short)
    );
    for (at, axis) in slice.axes.iter().enumerate() {
        let _ = write!(page, "<div class=\"axis\"><span>axis {at}</span>");
        match axis.span {
            Some(span) => part(page, span, axis.step.unwrap_or(1)),
            None if axis.is_known => open(page, axis.omits),
            None => page.push_str("<div class=\"bar unknown\"></div>"),
        }
        page.push_str("</div>");
    }
    page.push_str("</div>");
    if short != full {
        let _ = write!(page, "<details><summary>Sizes in full</summary><p>{}</p></details>", name(&full));
    }
    page.push_str("</figure>\n");
}

/// Draws the order of omitted and selected elements, in equal parts because the proportions are open.
fn open(page: &mut String, (before, after): (bool, bool)) {
    let omitted = |is_omitted: bool| if is_omitted { "<i></i>" } else { "" };
    let _ = write!(page, "<div class=\"bar open\">{}<span></span>{}</div>", omitted(before), omitted(after));
}

/// Draws a range of an axis. With a step, stripes show the taken elements, and the density of the taken elements if sizes are open.
fn part(page: &mut String, span: Span, step: i64) {
    let (begin, length) = (span.begin * 100.0, span.length * 100.0);
    let step = step.unsigned_abs();
    let _ = write!(page, "<div class=\"bar\"><span");
    if step > 1 {
        let stripes = match span.element {
            Some(element) if span.length > 0.0 => {
                let fill = element / span.length * 100.0;
                format!("--fill:{fill:.3}%;--period:{:.3}%", fill * step as f64)
            }
            _ => format!("--fill:6px;--period:{}px", step.saturating_mul(6)),
        };
        let _ = write!(page, " class=\"steps\" style=\"left:{begin:.2}%;width:{length:.2}%;{stripes}\"");
    } else {
        let _ = write!(page, " style=\"left:{begin:.2}%;width:{length:.2}%\"");
    }
    page.push_str("></span></div>");
}

/// Describes the selected elements of an axis; sizes are cut to `most` characters.
fn described(at: usize, axis: &AxisTaken, most: usize) -> String {
    let size = cut(&axis.size, most);
    match &axis.taken {
        Some((start, len)) => {
            let step =
                axis.step.filter(|step| *step != 1).map_or_else(String::new, |step| format!(" with step {step}"));
            let (start, len) = (cut(start, most), cut(len, most));
            format!("axis {at}: {len} of {size} elements, from index {start}{step}")
        }
        None if axis.is_known => format!("axis {at}: all {size} elements"),
        None => format!("axis {at}: some of {size} elements; their number is known only at run time"),
    }
}
