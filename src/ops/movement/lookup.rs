//! Attributes and positions that gathers and scatters share: the axis, the batch dims, the reduction, and the position of each element.

use super::count;
use crate::ir::MAX_ELEMENTS;
use crate::ops::{Decline, Refusal, Site, axis_in};
use crate::tensor::counted_in;

pub(super) fn outside(index: i64, dim: usize) -> Decline {
    Decline::invalid(format!("an element of 'indices' is {index}, which is out of range for a dim of {dim}"))
}

/// Returns indices into one dim as positions.
pub(super) fn places(indices: &[i64], dim: usize) -> Result<Vec<usize>, Decline> {
    indices.iter().map(|&index| counted_in(index, dim).ok_or_else(|| outside(index, dim))).collect()
}

pub(super) fn gather_axis(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    axis_in(site.attr_int("axis")?.unwrap_or(0), rank)
}

/// Returns the position in the data for each element of the indices of GatherElements and ScatterElements: its own position, except along
/// `axis`. The order is row-major.
pub(super) fn element_places(
    data: &[usize],
    indices: &[usize],
    axis: usize,
    values: &[i64],
    each_row: &mut dyn FnMut(&[usize]) -> Result<(), Decline>,
) -> Result<(), Decline> {
    let dim = data.get(axis).copied().unwrap_or(0);
    let fits = |(at, (&index, &dim)): (usize, (&usize, &usize))| at == axis || index <= dim;
    if data.len() != indices.len() || !indices.iter().zip(data).enumerate().all(fits) {
        return Err(Decline::invalid(format!(
            "'indices' has shape {indices:?}, which does not fit 'data' of shape {data:?}"
        )));
    }
    let Some((&last, outer)) = indices.split_last().filter(|_| !values.is_empty()) else { return Ok(()) };
    // There are elements, so no visited dim of the data is 0, and its strides are those of memory.
    let strides = crate::tensor::strides_of(data);
    let strides = strides.ok_or_else(|| Decline::OverBudget("the data exceeds the address space".into()))?;
    let stride_of = |axis: usize| strides.get(axis).map_or(0, |&stride| stride.unsigned_abs());
    let (along, last_stride) = (stride_of(axis), if axis == outer.len() { 0 } else { 1 });
    let mut rows = crate::tensor::Indices::new(outer);
    let mut places = Vec::with_capacity(last);
    let (wide, limit) = (i64::try_from(dim).unwrap_or(i64::MAX), dim as u64);
    for values in values.chunks(last.max(1)) {
        let Some(row) = rows.advance() else { break };
        let others = row.iter().enumerate().filter(|&(at, _)| at != axis);
        let base: usize = others.map(|(at, &index)| index.wrapping_mul(stride_of(at))).sum();
        let mut inside = true;
        places.clear();
        places.extend(values.iter().enumerate().map(|(at, &value)| {
            let index = if value < 0 { value.wrapping_add(wide) } else { value } as u64;
            inside &= index < limit;
            base.wrapping_add(at.wrapping_mul(last_stride)).wrapping_add((index as usize).wrapping_mul(along))
        }));
        if !inside {
            let wrong = values.iter().find(|&&value| counted_in(value, dim).is_none()).copied().unwrap_or_default();
            return Err(outside(wrong, dim));
        }
        each_row(&places)?;
    }
    Ok(())
}

pub(super) fn batch_dims(site: &Site<'_>) -> Result<usize, Refusal> {
    let given = if site.version < 12 { None } else { site.attr_int("batch_dims")? };
    usize::try_from(given.unwrap_or(0)).map_err(|_| Refusal::invalid("attribute 'batch_dims' is negative"))
}

/// Returns the positions for the index tuples of GatherND and ScatterND: the first element, in row-major order, of the part of the data
/// that each selects.
pub(super) fn tuple_places(
    data: &[usize],
    indices: &[usize],
    batch: usize,
    values: &[i64],
) -> Result<Vec<usize>, Decline> {
    check_batch(batch, data.len(), indices.len())?;
    let misfit =
        || Decline::invalid(format!("'indices' has shape {indices:?}, which does not fit 'data' of shape {data:?}"));
    let (&last, tuples) = indices.split_last().ok_or_else(misfit)?;
    let named = data.get(batch..batch.saturating_add(last)).ok_or_else(misfit)?;
    if data.get(..batch) != tuples.get(..batch) {
        return Err(Decline::unsupported(format!(
            "the batch dims of 'data' ({data:?}) and 'indices' ({indices:?}) differ"
        )));
    }
    let strides = crate::tensor::strides_of(data).ok_or_else(misfit)?;
    let strides: Vec<usize> = strides.iter().map(|stride| stride.unsigned_abs()).collect();
    let (batch_strides, named_strides) = strides.split_at_checked(batch).ok_or_else(misfit)?;
    let number = count(tuples)?;
    if last == 0 && number > MAX_ELEMENTS {
        return Err(Decline::unsupported("an element of 'indices' is out of range"));
    }
    let tuples_of_batch = tuples.get(batch..).map_or(Ok(1), count)?.max(1);
    let mut batches = crate::tensor::Indices::new(data.get(..batch).unwrap_or_default());
    let mut base = 0usize;
    let mut places = Vec::with_capacity(number);
    for at in 0..number {
        if at % tuples_of_batch == 0 {
            let batch = batches.advance().ok_or_else(misfit)?;
            base = batch.iter().zip(batch_strides).map(|(&index, &stride)| index.wrapping_mul(stride)).sum();
        }
        let tuple = values.get(at * last..at * last + last).ok_or_else(misfit)?;
        let mut start = base;
        for ((&index, &dim), &stride) in tuple.iter().zip(named).zip(named_strides) {
            let place = counted_in(index, dim).ok_or_else(|| outside(index, dim))?;
            start = start.wrapping_add(place.wrapping_mul(stride));
        }
        places.push(start);
    }
    Ok(places)
}

/// The operation that combines an update with the element at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduction {
    None,
    Add,
    Mul,
    Max,
    Min,
}

pub(super) fn reduction(site: &Site<'_>) -> Result<Reduction, Refusal> {
    let name = if site.version < 16 { None } else { site.attr_str("reduction")? };
    Ok(match name {
        None | Some("none") => Reduction::None,
        Some("add") => Reduction::Add,
        Some("mul") => Reduction::Mul,
        Some("max") if site.version >= 18 => Reduction::Max,
        Some("min") if site.version >= 18 => Reduction::Min,
        Some(name) => return Err(Refusal::invalid(format!("attribute 'reduction' is '{name}', which is not defined"))),
    })
}

pub(super) fn scatter_axis(site: &Site<'_>, rank: usize) -> Result<usize, Refusal> {
    axis_in(site.attr_int("axis")?.unwrap_or(0), rank)
}

pub(super) fn element_starts(
    data: &[usize],
    indices: &[usize],
    axis: usize,
    values: &[i64],
) -> Result<Vec<usize>, Decline> {
    let mut starts = Vec::with_capacity(values.len());
    element_places(data, indices, axis, values, &mut |row| {
        starts.extend_from_slice(row);
        Ok(())
    })?;
    Ok(starts)
}

/// Checks `b < min(q, r)`.
pub(super) fn check_batch(batch: usize, data: usize, indices: usize) -> Result<(), Refusal> {
    if batch >= data.min(indices) {
        return Err(Refusal::invalid(format!(
            "attribute 'batch_dims' is {batch}, which does not fit 'data' of rank {data} and 'indices' of rank {indices}"
        )));
    }
    Ok(())
}
